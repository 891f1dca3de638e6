// Sample translations under their sources and references.

/// For each word, whether it is in a longest common subsequence with the other text.
function wordsInCommon(words, others) {
  const rows = words.length,
    columns = others.length;
  const longest = Array.from({length: rows + 1}, () => new Uint16Array(columns + 1));
  for (let i = rows - 1; i >= 0; --i) {
    for (let j = columns - 1; j >= 0; --j) {
      longest[i][j] =
        words[i] === others[j]
          ? longest[i + 1][j + 1] + 1
          : Math.max(longest[i + 1][j], longest[i][j + 1]);
    }
  }
  const common = new Array(rows).fill(false);
  for (let i = 0, j = 0; i < rows && j < columns;) {
    if (words[i] === others[j]) {
      common[i] = true;
      ++i;
      ++j;
    } else if (longest[i + 1][j] >= longest[i][j + 1]) ++i;
    else ++j;
  }
  return common;
}

/// The translation with the words underlined that the reference does not have there.
function compared(text, reference) {
  if (text.trim() === "") return [element("span", {class: "empty"}, "nothing")];
  const mostWords = 400; // a table of so many by so many is quick
  const words = text.split(/(\s+)/),
    others = reference.split(/\s+/);
  if (words.length > 2 * mostWords || others.length > mostWords) return [text];
  const common = wordsInCommon(
    words.filter(word => word.trim()),
    others,
  );
  let next = 0;
  return words.map(word =>
    word.trim() === "" || common[next++] ? word : element("mark", {}, word),
  );
}

function sampleCard(sample) {
  const several = data.runs.length > 1;
  const best = Math.max(...sample.translations.map(each => each.chrf));
  const line = (role, words, score) =>
    element(
      "div",
      {class: "line"},
      element("div", {class: "role"}, role),
      words,
      score ? element("div", {class: "score"}, score) : null,
    );
  const rows = [
    element(
      "div",
      {class: "head"},
      element("span", {class: "tag"}, sample.kind),
      `line ${grouped(sample.line)}`,
    ),
    line("Source", element("div", {class: "words source"}, sample.source)),
    line("Reference", element("div", {class: "words"}, sample.reference)),
  ];
  for (const each of sample.translations) {
    const chrf = fixed(each.chrf, 1);
    rows.push(
      line(
        several ? runName(each.run) : "Translation",
        element("div", {class: "words"}, compared(each.text, sample.reference)),
        [
          "chrF ",
          several && each.chrf === best ? element("b", {}, chrf) : chrf,
          ` · BLEU ${fixed(each.bleu, 1)}`,
        ],
      ),
    );
  }
  return element("article", {class: "card sample"}, rows);
}

function samplesSection() {
  if (!data.samples || data.samples.length === 0) return null;
  const from = data.sampled;
  const shown = new Set(data.samples[0].translations.map(each => each.run));
  const others = data.runs.filter((run, i) => !shown.has(i)).map(run => run.name);
  return element(
    "section",
    {},
    element("h2", {}, "Sample translations"),
    element(
      "p",
      {class: "lead small"},
      `From the ${grouped(from.sentences)} lines of the ${from.text} text: some taken by chance ` +
        `(seed ${from.seed}), some with the highest and some with the lowest chrF of a sentence. ` +
        "Underlined is what the reference does not say in this order.",
      others.length ? ` Not of the same text, or without translations: ${others.join(", ")}.` : "",
    ),
    element("div", {class: "samples"}, data.samples.map(sampleCard)),
  );
}
