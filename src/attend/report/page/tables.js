// What the runs are: key figures, scores, data, tokenizers, models.

function table(head, rows, className) {
  return element(
    "div",
    {class: "scroll"},
    element(
      "table",
      {class: className},
      element("thead", {}, element("tr", {}, head)),
      element("tbody", {}, rows),
    ),
  );
}
const th = (text, attributes) => element("th", {scope: "col", ...attributes}, text);
const rowHead = text => element("th", {scope: "row"}, text);
const number = (text, attributes) => element("td", {class: "number", ...attributes}, text);

const bestOf = (run, name) => (run.best ? run.best[name] : undefined);

function tiles(run) {
  const tile = (name, value, more) =>
    value === null
      ? null
      : element(
          "div",
          {class: "tile"},
          element("dt", {}, name),
          element("dd", {}, value, more ? element("small", {}, more) : null),
        );
  const best = run.best;
  return element(
    "dl",
    {class: "tiles"},
    best && isNumber(best.bleu)
      ? tile("Best BLEU", fixed(best.bleu, 2), `validation, update ${grouped(best.update)}`)
      : null,
    best ? tile("Perplexity", fixed(best.perplexity, 2), "validation, of that model") : null,
    tile("Trained", `${grouped(run.done.updates)}`, `updates, ${fixed(run.done.epochs, 1)} epochs`),
    tile("Time", duration(run.done.seconds), `${grouped(run.speed)} tokens/s`),
    run.weights
      ? tile("Model", `${compact(run.weights)}`, `weights, ${run.stored || ""} ${bytes(run.bytes)}`)
      : null,
    run.pairs
      ? tile("Training pairs", grouped(run.pairs), `${compact(run.done.tokens)} target tokens seen`)
      : null,
  );
}

/// Whether all runs that have it have the same.
const agree = values => new Set(values.filter(value => value !== undefined)).size <= 1;

/// Scores of different texts are not better or worse than each other, nor perplexities of tokens
/// that are cut differently.
function comparable(name) {
  const option = key =>
    agree(data.runs.map(run => (run.recipe.find(each => each.name === key) || {}).value));
  const sameText = ["valid_source", "valid_target", "valid_tsv"].every(option);
  return (
    sameText &&
    (name !== "Perplexity" ||
      agree(
        data.runs.map(run => run.tokenizers && run.tokenizers.map(each => each.fingerprint).join()),
      ))
  );
}

function comparison() {
  const columns = [
    ["BLEU", run => bestOf(run, "bleu"), value => fixed(value, 2), Math.max],
    ["chrF2", run => bestOf(run, "chrf"), value => fixed(value, 2), Math.max],
    ["Perplexity", run => bestOf(run, "perplexity"), value => fixed(value, 2), Math.min],
    ["Best at", run => bestOf(run, "update"), grouped],
    ["Updates", run => run.done.updates, grouped],
    ["Epochs", run => run.done.epochs, value => fixed(value, 1)],
    ["Time", run => run.done.seconds, duration],
    ["Tokens/s", run => run.speed, grouped],
    ["Weights", run => run.weights || undefined, value => (value ? compact(value) : "–")],
  ];
  const head = [th("Run"), columns.map(([name]) => th(name, {class: "number"})), th("State")];
  const rows = data.runs.map((run, i) =>
    element(
      "tr",
      {},
      element("th", {scope: "row"}, runName(i)),
      columns.map(([name, value, text, better]) => {
        const all = data.runs.map(value).filter(isNumber);
        const best = better && comparable(name) && all.length > 1 && value(run) === better(...all);
        return number(text(value(run)), {class: best ? "number best" : "number"});
      }),
      element("td", {}, run.state),
    ),
  );
  return table(head, rows);
}

function notesList() {
  const several = data.runs.length > 1;
  const notes = data.runs.flatMap(run =>
    run.notes.map(note => (several ? `${run.name}: ${note}` : note)),
  );
  return notes.length === 0
    ? null
    : element(
        "ul",
        {class: "notes", "aria-label": "What is missing"},
        notes.map(note => element("li", {}, note)),
      );
}

function datesOf(run) {
  if (!run.started) return "";
  return (
    `${run.started} to ${run.last} UTC` +
    (run.resumes ? `, resumed ${run.resumes === 1 ? "once" : `${run.resumes} times`}` : "")
  );
}

function headerSection() {
  const only = data.runs.length === 1 ? data.runs[0] : null;
  return element(
    "header",
    {},
    element("p", {class: "eyebrow"}, "attend report"),
    element("h1", {}, only ? only.name : `${data.runs.length} runs`),
    only
      ? element("p", {class: "lead"}, [only.state, datesOf(only)].filter(Boolean).join(" · "))
      : null,
    only ? tiles(only) : comparison(),
    notesList(),
  );
}

function scoresSection() {
  const scores = data.runs.flatMap((run, i) =>
    (run.scores || []).map(score => ({...score, run: i})),
  );
  if (scores.length === 0) return null;
  const several = data.runs.length > 1;
  // One table a text and metric where runs are compared, so that equals stand below each other.
  const order = score => [
    score.text === "test" ? 1 : 0,
    ["BLEU", "chrF2", "TER"].indexOf(score.metric),
    score.run,
  ];
  scores.sort((a, b) => order(a).reduce((found, value, i) => found || value - order(b)[i], 0));
  const best = score => {
    const all = scores
      .filter(
        each =>
          each.text === score.text && each.metric === score.metric && each.files === score.files,
      )
      .map(each => each.value);
    return (
      all.length > 1 &&
      score.value === (score.metric === "TER" ? Math.min(...all) : Math.max(...all))
    );
  };
  return element(
    "section",
    {},
    element("h2", {}, "Scores"),
    element(
      "p",
      {class: "lead small"},
      "Of the model that each run keeps, with sacreBLEU's signatures. " +
        "BLEU and chrF: more is better; TER: less is.",
    ),
    table(
      [
        several ? th("Run") : null,
        th("Text"),
        th("Metric"),
        th("Score", {class: "number"}),
        th("Signature"),
      ],
      scores.map(score =>
        element(
          "tr",
          {},
          several ? element("th", {scope: "row"}, runName(score.run)) : null,
          element("td", {class: "nowrap"}, `${score.text}, ${grouped(score.sentences)} lines`),
          element("td", {}, score.metric),
          number(fixed(score.value, 2), {class: best(score) ? "number best" : "number"}),
          element(
            "td",
            {class: "mono wrap signature"},
            score.signature,
            score.verbose ? element("span", {class: "muted"}, ` ${score.verbose}`) : null,
          ),
        ),
      ),
    ),
  );
}

const dataNames = {
  pairs_read: "pairs read",
  pairs_kept: "kept for training",
  empty: "left out: a side is empty",
  too_long: "left out: too long",
  length_ratio: "left out: lengths too unequal",
  bad_lines: "left out: no tab, or several",
  bad_utf8: "with bytes that are no UTF-8",
};

function factsTable(title, rows) {
  const several = data.runs.length > 1;
  const isKnown = value => value !== undefined && value !== "–";
  const filled = rows.filter(row => row.values.some(isKnown));
  if (filled.length === 0) return null;
  return element(
    "div",
    {},
    table(
      [th(title), data.runs.map((run, i) => th(several ? runName(i) : "", {class: "number"}))],
      filled.map(row =>
        element(
          "tr",
          {class: several && new Set(row.values).size > 1 ? "differs" : ""},
          rowHead(row.name),
          data.runs.map((run, i) => number(row.values[i] === undefined ? "–" : row.values[i])),
        ),
      ),
    ),
  );
}

function factsSection() {
  const runs = data.runs;
  const dataKeys = [...new Set(runs.flatMap(run => Object.keys(run.data || {})))].filter(key =>
    runs.some(run => run.data && isNumber(run.data[key])),
  );
  dataKeys.sort((a, b) => Object.keys(dataNames).indexOf(a) - Object.keys(dataNames).indexOf(b));
  const dataRows = dataKeys.map(key => ({
    name: dataNames[key] || key,
    values: runs.map(run => (run.data ? grouped(run.data[key]) : undefined)),
  }));
  const modelKeys = [...new Set(runs.flatMap(run => Object.keys(run.model || {})))].filter(
    key => key !== "format",
  );
  const modelRows = [
    {name: "weights", values: runs.map(run => (run.weights ? grouped(run.weights) : undefined))},
    {
      name: "size of the file",
      values: runs.map(run => (run.bytes ? `${bytes(run.bytes)} (${run.stored})` : undefined)),
    },
    {
      name: "most memory held",
      values: runs.map(run =>
        run.peak_resident_bytes ? bytes(run.peak_resident_bytes) : undefined,
      ),
    },
    ...modelKeys.map(key => ({
      name: key,
      values: runs.map(run => (run.model ? String(run.model[key]) : undefined)),
    })),
  ];
  const sides = [...new Set(runs.flatMap(run => (run.tokenizers || []).map(each => each.side)))];
  const tokenizerRows = sides.flatMap(side => {
    const of = name =>
      runs.map(run => {
        const found = (run.tokenizers || []).find(each => each.side === side);
        return found ? found[name] : undefined;
      });
    return [
      {
        name: `pieces, ${side}`,
        values: of("pieces").map(value => (value === undefined ? undefined : grouped(value))),
      },
      {
        name: `byte fallback, ${side}`,
        values: of("byte_fallback").map(value =>
          value === undefined ? undefined : value ? "on" : "off",
        ),
      },
      {name: `fingerprint, ${side}`, values: of("fingerprint")},
    ];
  });
  return element(
    "section",
    {},
    element("h2", {}, "Data and model"),
    element(
      "div",
      {class: "pair"},
      element(
        "div",
        {},
        factsTable("Training pairs", dataRows),
        factsTable("Tokenizer", tokenizerRows),
      ),
      factsTable("Model", modelRows),
    ),
  );
}

function footer() {
  return element(
    "footer",
    {},
    element(
      "div",
      {},
      data.runs.map(run =>
        element(
          "div",
          {},
          element("span", {class: "mono"}, run.folder),
          ` · ${[run.state, datesOf(run)].filter(Boolean).join(" · ")}`,
        ),
      ),
    ),
    `Made by attend ${data.version}. Curves are drawn by Chart.js.`,
  );
}
