// Learning curves of all runs over each other, drawn by Chart.js.

const axes = {
  update: {
    label: "Updates",
    title: "updates",
    text: value => `update ${grouped(value)}`,
    tick: compact,
  },
  epoch: {
    label: "Epochs",
    title: "epochs",
    text: value => `epoch ${fixed(value, 2)}`,
    tick: compact,
  },
  tokens: {
    label: "Tokens",
    title: "target tokens",
    text: value => `${grouped(value)} tokens`,
    tick: compact,
  },
  seconds: {
    label: "Time",
    title: "",
    text: value => duration(value * axes.seconds.unit),
    tick: compact,
  },
};

const longestTime = Math.max(0, ...data.runs.map(run => run.done.seconds || 0));
const inHours = longestTime > 3 * 3600;
axes.seconds.unit = inHours ? 3600 : 60;
axes.seconds.title = `${inHours ? "hours" : "minutes"} of training`;

const panels = [
  {
    title: "Loss",
    unit: "nats a token",
    training: "loss",
    validation: "loss",
    text: value => fixed(value, 3),
  },
  {
    title: "Perplexity",
    unit: "logarithmic",
    training: "perplexity",
    validation: "perplexity",
    logarithmic: true,
    text: short,
  },
  {title: "BLEU", unit: "validation text", validation: "bleu", text: value => fixed(value, 2)},
  {title: "chrF2", unit: "validation text", validation: "chrf", text: value => fixed(value, 2)},
  {
    title: "Accuracy",
    unit: "% of target tokens",
    validation: "accuracy",
    text: value => `${fixed(value, 2)} %`,
  },
  {title: "Learning rate", unit: "", training: "learning_rate", text: short},
  {title: "Gradient norm", unit: "before clipping", training: "gradient_norm", text: short},
  {
    title: "Speed",
    unit: "target tokens a second",
    training: "tokens_per_second",
    text: grouped,
    fromZero: true,
  },
];

const curves = {
  axis: "update",
  waiting: [],
  charts: [],
  hiddenRuns: new Set(),
  hiddenKinds: new Set(),
};

function pointsOf(series, name) {
  const unit = axes[curves.axis].unit || 1;
  const x = series[curves.axis].map(value => (isNumber(value) ? value / unit : value));
  const points = [];
  for (let i = 0; i < x.length; ++i) {
    if (isNumber(x[i]) && isNumber(series[name][i])) points.push({x: x[i], y: series[name][i]});
  }
  return points;
}

/// The same for all panels, so that what stands above each other belongs together.
function lastX() {
  const done = data.runs.map(
    run =>
      ({
        update: run.done.updates,
        epoch: run.done.epochs,
        tokens: run.done.tokens,
        seconds: run.done.seconds,
      })[curves.axis] / (axes[curves.axis].unit || 1),
  );
  return Math.max(0, ...done.filter(isNumber));
}

function dataset(panel, kind, run) {
  const training = kind === "training";
  const both = panel.training && panel.validation;
  const series = data.runs[run][kind];
  return {
    label: data.runs[run].name + (both ? (training ? ", training" : ", validation") : ""),
    data: pointsOf(series, panel[kind]),
    run,
    kind,
    hidden: curves.hiddenRuns.has(run) || curves.hiddenKinds.has(kind),
    borderDash: dashOf(run),
    borderWidth: training ? (both ? 1.25 : 1.75) : 2.5,
    pointRadius: training ? 0 : series.update.length > 40 ? 0 : 3,
    pointHoverRadius: 5,
    pointHitRadius: 8,
    tension: 0,
    order: training ? 1 : 0,
  };
}

/// Light and dark come from the style sheet; a canvas has to be told.
function paint(chart) {
  const text = styleValue("--muted"),
    grid = styleValue("--grid"),
    surface = styleValue("--surface");
  for (const each of chart.data.datasets) {
    const colour = styleValue(colourOf(each.run));
    const faint = each.kind === "training" && each.label.endsWith(", training");
    each.borderColor = colour + (faint ? "b0" : "");
    each.backgroundColor = colour;
    each.pointBackgroundColor = colour;
    each.pointBorderWidth = 0;
  }
  for (const scale of Object.values(chart.options.scales)) {
    scale.grid.color = grid;
    scale.ticks.color = text;
    scale.title.color = text;
  }
  Object.assign(chart.options.plugins.tooltip, {
    backgroundColor: surface,
    borderColor: styleValue("--line"),
    titleColor: text,
    bodyColor: styleValue("--text"),
  });
}

function optionsOf(panel) {
  const tick = panel.title === "Learning rate" ? short : compact;
  return {
    animation: false,
    parsing: false,
    normalized: true,
    responsive: true,
    maintainAspectRatio: false,
    interaction: {mode: "nearest", axis: "x", intersect: false},
    plugins: {
      legend: {display: false},
      tooltip: {
        borderWidth: 1,
        padding: 10,
        boxWidth: 10,
        boxHeight: 10,
        usePointStyle: false,
        itemSort: (a, b) => a.dataset.run - b.dataset.run || a.dataset.order - b.dataset.order,
        callbacks: {
          title: items => (items.length ? axes[curves.axis].text(items[0].parsed.x) : ""),
          label: item => ` ${item.dataset.label}: ${panel.text(item.parsed.y)}`,
        },
      },
    },
    scales: {
      x: {
        type: "linear",
        min: 0,
        suggestedMax: lastX(),
        grid: {drawBorder: false},
        title: {display: true, text: axes[curves.axis].title},
        ticks: {maxRotation: 0, maxTicksLimit: 7, callback: value => axes[curves.axis].tick(value)},
      },
      y: {
        type: panel.logarithmic ? "logarithmic" : "linear",
        beginAtZero: Boolean(panel.fromZero),
        grace: panel.logarithmic ? 0 : "4%",
        grid: {drawBorder: false},
        title: {display: false},
        ticks: {maxTicksLimit: 6, callback: value => tick(value)},
      },
    },
  };
}

function chartCard(panel) {
  const datasets = [];
  for (let run = 0; run < data.runs.length; ++run) {
    for (const kind of ["training", "validation"]) {
      if (panel[kind]) datasets.push(dataset(panel, kind, run));
    }
  }
  if (datasets.every(each => each.data.length === 0)) return null;
  const canvas = element("canvas", {
    role: "img",
    "aria-label": `${panel.title} of ${data.runs.map(run => run.name).join(", ")}`,
  });
  curves.waiting.push(() => {
    const chart = new Chart(canvas, {type: "line", data: {datasets}, options: optionsOf(panel)});
    chart.panel = panel;
    paint(chart);
    chart.update("none");
    curves.charts.push(chart);
  });
  return element(
    "section",
    {class: "card chart"},
    element("h3", {}, panel.title, panel.unit ? element("span", {}, panel.unit) : null),
    element("div", {class: "plot"}, canvas),
  );
}

/// Canvases have a size once they stand on the page.
function drawCurves() {
  for (const draw of curves.waiting) draw();
}

function redraw() {
  for (const chart of curves.charts) {
    chart.options.scales.x.title.text = axes[curves.axis].title;
    chart.options.scales.x.suggestedMax = lastX();
    for (const each of chart.data.datasets) {
      each.data = pointsOf(data.runs[each.run][each.kind], chart.panel[each.kind]);
      each.hidden = curves.hiddenRuns.has(each.run) || curves.hiddenKinds.has(each.kind);
    }
    paint(chart);
    chart.update("none");
  }
}

/// A key of the legend that shows and hides what it names.
function legendKey(hidden, value, ...content) {
  return element(
    "button",
    {
      type: "button",
      class: "key",
      "aria-pressed": "true",
      onclick: event => {
        const shown = hidden.delete(value) || !hidden.add(value);
        event.currentTarget.setAttribute("aria-pressed", String(shown));
        redraw();
      },
    },
    content,
  );
}

function legend() {
  const runs =
    data.runs.length > 1
      ? data.runs.map((run, i) => legendKey(curves.hiddenRuns, i, swatch(i), run.name))
      : [];
  return element(
    "div",
    {class: "legend"},
    runs,
    legendKey(curves.hiddenKinds, "training", element("span", {class: "stroke thin"}), "Training"),
    legendKey(curves.hiddenKinds, "validation", element("span", {class: "stroke"}), "Validation"),
  );
}

function smoothingNote() {
  const smoothing = data.runs.map(
    run => (run.recipe.find(each => each.name === "label_smoothing") || {}).value,
  );
  return smoothing.some(value => Number(value) > 0)
    ? "Losses include label smoothing, perplexities do not; dropout is on in training alone. " +
        "Losses of runs with different label smoothing do not compare."
    : "";
}

function mergedNote() {
  return data.runs
    .filter(run => run.training.merged > 1)
    .map(
      run =>
        `Of ${run.name}, ${grouped(run.training.points)} points were logged; ` +
        `every ${run.training.merged} are drawn as one.`,
    )
    .join(" ");
}

function curvesSection() {
  const cards = panels.map(chartCard).filter(Boolean);
  if (cards.length === 0) return null;
  const names = Object.entries(axes).map(([name, axis]) => [name, axis.label]);
  return element(
    "section",
    {},
    element("h2", {}, "Learning curves"),
    element("p", {class: "lead small"}, [smoothingNote(), mergedNote()].filter(Boolean).join(" ")),
    element(
      "div",
      {class: "controls sticky"},
      segments("Horizontal axis", names, curves.axis, name => {
        curves.axis = name;
        redraw();
      }),
      legend(),
    ),
    element("div", {class: "charts"}, cards),
  );
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
for (const event of ["beforeprint", "afterprint"]) {
  addEventListener(event, () => {
    for (const chart of curves.charts) chart.resize();
    redraw();
  });
}
matchMedia("print").addEventListener("change", redraw);
