// Puts the page together. Tests read from the root element what went well.

const report = document.getElementById("report");
report.append(
  ...[
    headerSection(),
    curvesSection(),
    scoresSection(),
    samplesSection(),
    attentionSection(),
    recipeSection(),
    factsSection(),
    footer(),
  ].filter(Boolean),
);
drawCurves();
document.documentElement.dataset.charts = String(curves.charts.length);
