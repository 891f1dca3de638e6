// Encoder–decoder attention: a small map for each layer and head, and the chosen one, large, with
// its tokens.

/// Weights are thousandths, [layers, heads, target, source].
function weightsOf(map, layer, head) {
  const size = map.target.length * map.source.length;
  if (head < map.heads) {
    const begin = (layer * map.heads + head) * size;
    return map.weights.slice(begin, begin + size);
  }
  const mean = new Array(size).fill(0);
  for (let each = 0; each < map.heads; ++each) {
    weightsOf(map, layer, each).forEach((weight, i) => {
      mean[i] += weight / map.heads;
    });
  }
  return mean;
}

/// Small weights stay visible: the eye compares inks better than their tenth parts.
const inkOf = weight => Math.sqrt(weight / 1000);

const headName = (map, head) => (head < map.heads ? `head ${head + 1}` : "mean of heads");

/// Cells of like ink are one path, so that many maps are quick to draw.
function thumbnail(map, layer, head) {
  const inks = 6;
  const paths = Array.from({length: inks}, () => "");
  weightsOf(map, layer, head).forEach((weight, i) => {
    const level = Math.round(inkOf(weight) * inks) - 1;
    if (level >= 0)
      paths[level] += `M${i % map.source.length} ${Math.floor(i / map.source.length)}h1v1h-1z`;
  });
  return svg(
    "svg",
    {
      viewBox: `0 0 ${map.source.length} ${map.target.length}`,
      preserveAspectRatio: "none",
      "aria-hidden": "true",
    },
    paths.map((path, level) => path && svg("path", {d: path, "fill-opacity": (level + 1) / inks})),
  );
}

/// The tokens as people read them.
const shownPiece = piece => (piece === "</s>" ? "⏎ end" : piece);

function largeMap(map, layer, head, readout) {
  const cell = 22,
    columns = map.source.length,
    rows = map.target.length;
  const widest = pieces => Math.max(...pieces.map(piece => [...shownPiece(piece)].length));
  const left = 14 + 7.6 * Math.min(widest(map.target), 18),
    top = 14 + 7.6 * Math.min(widest(map.source), 18);
  const weights = weightsOf(map, layer, head);
  const clipped = piece =>
    [...shownPiece(piece)].length > 18
      ? [...shownPiece(piece)].slice(0, 17).join("") + "…"
      : shownPiece(piece);
  const cross = svg("rect", {class: "cross", width: cell, height: cell, visibility: "hidden"});
  const width = left + columns * cell + 30,
    height = top + rows * cell + 4;
  const picture = svg(
    "svg",
    {
      class: "map",
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: "img",
      "aria-label":
        `Attention of layer ${layer + 1}, ${headName(map, head)}: ` +
        "rows are the translation's tokens, columns the source's",
    },
    map.source.map((piece, i) =>
      svg(
        "text",
        {
          transform: `translate(${left + i * cell + cell / 2 + 4} ${top - 8}) rotate(-60)`,
          class: piece === "</s>" ? "faint" : "",
        },
        clipped(piece),
      ),
    ),
    map.target.map((piece, i) =>
      svg(
        "text",
        {
          x: left - 8,
          y: top + i * cell + cell / 2 + 4,
          "text-anchor": "end",
          class: piece === "</s>" ? "faint" : "",
        },
        clipped(piece),
      ),
    ),
    weights.map((weight, i) =>
      weight < 2
        ? null
        : svg("rect", {
            class: "cell",
            x: left + (i % columns) * cell + 0.5,
            y: top + Math.floor(i / columns) * cell + 0.5,
            width: cell - 1,
            height: cell - 1,
            "fill-opacity": inkOf(weight).toFixed(3),
          }),
    ),
    svg("rect", {class: "frame", x: left, y: top, width: columns * cell, height: rows * cell}),
    cross,
  );
  picture.addEventListener("pointermove", event => {
    const box = picture.getBoundingClientRect();
    const column = Math.floor((((event.clientX - box.left) * width) / box.width - left) / cell);
    const row = Math.floor((((event.clientY - box.top) * height) / box.height - top) / cell);
    const inside = column >= 0 && column < columns && row >= 0 && row < rows;
    cross.setAttribute("visibility", inside ? "visible" : "hidden");
    if (!inside) return;
    cross.setAttribute("x", left + column * cell);
    cross.setAttribute("y", top + row * cell);
    const weight = (weights[row * columns + column] / 1000).toFixed(3);
    const [to, from] = [shownPiece(map.target[row]), shownPiece(map.source[column])];
    readout.textContent = `${to} ← ${from}: ${weight}`;
  });
  return picture;
}

class AttentionView {
  constructor(samples) {
    this.samples = samples;
    this.sample = 0;
    this.run = 0;
    this.thumbs = element("div", {class: "heads"});
    this.large = element("div", {class: "map-scroll"});
    this.caption = element("h3", {});
    this.readout = element("p", {class: "readout muted"}, "");
    this.sentence = element("p", {});
    this.choose();
  }

  maps() {
    return this.samples[this.sample].translations.filter(each => each.attention);
  }
  translation() {
    return this.maps().find(each => each.run === this.run) || this.maps()[0];
  }

  /// Another sentence or run: the layer whose mean aligns best is looked at first.
  choose() {
    const map = this.translation().attention;
    this.layer = Math.max(map.layers - 2, 0);
    this.head = map.heads;
    this.sentence.replaceChildren(
      element("span", {class: "muted"}, this.samples[this.sample].source),
      element("br"),
      this.translation().text,
    );
    this.drawThumbs();
    this.drawLarge();
  }

  drawThumbs() {
    const map = this.translation().attention;
    const heads = [...Array(map.heads + 1).keys()];
    const width = "minmax(2.25rem, 5rem)";
    this.thumbs.style.gridTemplateColumns = `auto repeat(${map.heads}, ${width}) 0.25rem ${width}`;
    const gap = () => element("span", {});
    const cells = [element("span", {class: "label row-label"}, "Head")];
    for (const head of heads) {
      if (head === map.heads) cells.push(gap());
      cells.push(element("span", {class: "label"}, head < map.heads ? String(head + 1) : "mean"));
    }
    for (let layer = 0; layer < map.layers; ++layer) {
      cells.push(element("span", {class: "label row-label"}, `Layer ${layer + 1}`));
      for (const head of heads) {
        if (head === map.heads) cells.push(gap());
        cells.push(
          element(
            "button",
            {
              type: "button",
              class: "thumb",
              "aria-label": `Layer ${layer + 1}, ${headName(map, head)}`,
              "aria-pressed": String(layer === this.layer && head === this.head),
              onclick: event => {
                for (const each of this.thumbs.querySelectorAll(".thumb"))
                  each.setAttribute("aria-pressed", "false");
                event.currentTarget.setAttribute("aria-pressed", "true");
                this.layer = layer;
                this.head = head;
                this.drawLarge();
              },
            },
            thumbnail(map, layer, head),
          ),
        );
      }
    }
    this.thumbs.replaceChildren(...cells);
  }

  drawLarge() {
    const map = this.translation().attention;
    this.caption.textContent = `Layer ${this.layer + 1}, ${headName(map, this.head)}`;
    this.readout.textContent = "Point at a cell for its weight.";
    this.large.replaceChildren(largeMap(map, this.layer, this.head, this.readout));
  }

  controls() {
    const cut = text => (text.length > 70 ? text.slice(0, 69) + "…" : text);
    const sentences = this.samples.map((sample, i) => [String(i), cut(sample.source)]);
    const runs = [
      ...new Set(
        this.samples.flatMap(sample =>
          sample.translations.filter(each => each.attention).map(each => each.run),
        ),
      ),
    ];
    return element(
      "div",
      {class: "controls"},
      this.samples.length > 1
        ? selectField("Sentence", sentences, value => {
            this.sample = Number(value);
            this.choose();
          })
        : null,
      runs.length > 1
        ? selectField(
            "Run",
            runs.map(run => [String(run), data.runs[run].name]),
            value => {
              this.run = Number(value);
              this.choose();
            },
          )
        : null,
    );
  }
}

function attentionSection() {
  const samples = (data.samples || []).filter(sample =>
    sample.translations.some(each => each.attention),
  );
  if (samples.length === 0) return null;
  const view = new AttentionView(samples);
  return element(
    "section",
    {},
    element("h2", {}, "Encoder–decoder attention"),
    element(
      "p",
      {class: "lead small"},
      "What the decoder looks at in the source (columns) when it puts out each token of its " +
        "translation (rows). A row adds up to 1; ink grows with the root of the weight.",
    ),
    view.controls(),
    element(
      "div",
      {class: "card"},
      view.sentence,
      element(
        "div",
        {class: "attention"},
        view.thumbs,
        element(
          "div",
          {},
          view.caption,
          view.readout,
          view.large,
          element("span", {class: "scale"}, "0", element("i", {}), "1"),
        ),
      ),
    ),
  );
}
