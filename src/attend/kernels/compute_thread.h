#pragma once

namespace attend {

/// Prepares the calling thread for computing. Every worker calls it once, first; the library
/// changes no caller's thread otherwise. From then on, in this thread:
///
/// - the matrix library uses one thread;
/// - numbers of less than 2^-126 (float32) or 2^-1022 (float64) count as 0, read or written: late
///   in a training there are enough to slow it down by a sixth (docs/performance.md).
void prepare_compute_thread();

}  // namespace attend
