// Small tools. Text comes to the page as text nodes alone, so that nothing in it is ever markup.

const data = JSON.parse(document.getElementById("data").textContent);

/// element("p", {class: "lead"}, "some text", otherElement)
function element(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function svg(name, attributes, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false)
      node.setAttribute(key, value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined) node.append(child);
  }
  return node;
}

function styleValue(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

const runColours = 7;
const colourOf = run => `--run-${run % runColours}`;
/// Beyond as many runs as there are colours, lines are dashed.
const dashOf = run => [[], [6, 3], [2, 2]][Math.floor(run / runColours) % 3];

function swatch(run) {
  return element("span", {class: "swatch", style: `background: var(${colourOf(run)})`});
}

function runName(run) {
  return element(
    "span",
    {class: "run-name", title: data.runs[run].folder},
    swatch(run),
    data.runs[run].name,
  );
}

/// A row of buttons of which one is pressed. choices: [[value, label], …]
function segments(label, choices, chosen, onChoice) {
  const buttons = choices.map(([value, text]) =>
    element(
      "button",
      {
        type: "button",
        "aria-pressed": String(value === chosen),
        onclick: event => {
          for (const each of buttons)
            each.setAttribute("aria-pressed", String(each === event.currentTarget));
          onChoice(value);
        },
      },
      text,
    ),
  );
  return element("div", {class: "segments", role: "group", "aria-label": label}, buttons);
}

function selectField(label, choices, onChoice) {
  const options = choices.map(([value, text]) => element("option", {value}, text));
  const select = element(
    "select",
    {onchange: event => onChoice(event.currentTarget.value)},
    options,
  );
  return element("label", {class: "field"}, label, select);
}

const isNumber = value => typeof value === "number" && Number.isFinite(value);

/// 12 345 678 with thin spaces.
function grouped(value) {
  return isNumber(value) ? String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, "\u2009") : "–";
}

/// 1.2M, 340k: for axes.
function compact(value) {
  for (const [size, suffix] of [
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
  ]) {
    if (Math.abs(value) >= size) return `${Number((value / size).toPrecision(4))}${suffix}`;
  }
  return String(Number(value.toPrecision(4)));
}

function fixed(value, digits) {
  return isNumber(value) ? value.toFixed(digits) : "–";
}

/// Four digits that count.
function short(value) {
  if (!isNumber(value)) return "–";
  if (value !== 0 && Math.abs(value) < 1e-3)
    return value
      .toExponential(2)
      .replace("e-", "·10⁻")
      .replace(/⁻(\d+)$/, (_, n) => "⁻" + [...n].map(d => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d]).join(""));
  return String(Number(value.toPrecision(4)));
}

function duration(seconds) {
  if (!isNumber(seconds)) return "–";
  const whole = Math.round(seconds);
  const pad = number => String(number).padStart(2, "0");
  if (whole >= 3600) return `${Math.floor(whole / 3600)} h ${pad(Math.floor(whole / 60) % 60)} min`;
  if (whole >= 60) return `${Math.floor(whole / 60)} min ${pad(whole % 60)} s`;
  return `${whole} s`;
}

function bytes(count) {
  if (!isNumber(count)) return "–";
  for (const [size, unit] of [
    [2 ** 30, "GiB"],
    [2 ** 20, "MiB"],
    [2 ** 10, "KiB"],
  ]) {
    if (count >= size) return `${(count / size).toFixed(1)} ${unit}`;
  }
  return `${count} B`;
}
