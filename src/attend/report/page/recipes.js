// The recipes, and how they differ.

/// The recipes' options in their order: {group, name, help, usual, values: a value a run}.
function recipeRows() {
  const rows = new Map();
  data.runs.forEach((run, i) => {
    for (const option of run.recipe) {
      if (!rows.has(option.name)) rows.set(option.name, {...option, values: [], usuals: []});
      rows.get(option.name).values[i] = option.value;
      rows.get(option.name).usuals[i] = option.usual;
    }
  });
  return [...rows.values()];
}

/// Paths break behind their slashes.
const breakable = text => text.split(/(?<=[\/,])/).flatMap(part => [part, element("wbr")]);

const valueCell = (row, run) => {
  const value = row.values[run];
  const changed = row.help !== "" && value !== undefined && value !== row.usuals[run];
  return element(
    "td",
    {class: `mono wrap${changed ? " changed" : ""}`},
    value === undefined ? "–" : value ? breakable(value) : "\u00a0",
  );
};

function recipeTable(rows, differing) {
  const several = data.runs.length > 1;
  const body = [];
  let group = null;
  for (const row of rows) {
    if (row.group !== group && !differing) {
      group = row.group;
      body.push(
        element(
          "tr",
          {class: "group"},
          element("th", {scope: "colgroup", colspan: data.runs.length + 2}, group),
        ),
      );
    }
    const differs = several && !differing && row.differs;
    body.push(
      element(
        "tr",
        {class: differs ? "differs" : ""},
        element("th", {scope: "row", class: "mono", title: row.help}, row.name),
        data.runs.map((run, i) => valueCell(row, i)),
        element("td", {class: "muted small help"}, row.help),
      ),
    );
  }
  return table(
    [
      th("Option"),
      data.runs.map((run, i) => (several ? th(runName(i)) : th("Value"))),
      th("", {class: "help"}),
    ],
    body,
  );
}

function recipeSection() {
  const rows = recipeRows();
  if (rows.length === 0) return null;
  for (const row of rows) {
    row.differs = !["run", "tensorboard"].includes(row.name) && !agree(row.values);
  }
  const several = data.runs.length > 1;
  const differing = rows.filter(row => row.differs);
  const changed = rows.filter(
    row =>
      row.help !== "" &&
      row.values.some((value, i) => value !== undefined && value !== row.usuals[i]),
  );
  const summary = several
    ? differing.length
      ? recipeTable(differing, true)
      : element("p", {}, "The recipes do not differ.")
    : recipeTable(changed, true);
  return element(
    "section",
    {},
    element("h2", {}, several ? "How the recipes differ" : "Recipe"),
    element(
      "p",
      {class: "lead small"},
      several
        ? "In bold is what is not the preset's default."
        : "What is not the preset's default; the whole recipe is below.",
    ),
    summary,
    element(
      "details",
      {},
      element("summary", {}, several ? "The whole recipes" : "The whole recipe"),
      recipeTable(rows, false),
    ),
  );
}
