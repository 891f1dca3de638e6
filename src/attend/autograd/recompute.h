#pragma once

#include <functional>

#include "attend/autograd/ops.h"

namespace attend {

/// A part of a model, as a function of its input and of variables that it captures.
using StreamPart = std::function<Stream(Context& context, const Stream& x)>;

/// part(x), keeping nothing of what lies between the two: when the gradient comes back, the part
/// runs once more, with the same random numbers, and is played back at once (Chen et al. 2016,
/// "Training Deep Nets with Sublinear Memory Cost"). Same bits as part(context, x) by itself, for
/// one more forward pass of time. A parameter that the part uses must be used nowhere else.
Stream recomputed(Context& context, const Stream& x, const StreamPart& part);

}  // namespace attend
