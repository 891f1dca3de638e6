#!/bin/sh
# Opens a report in a browser: whether its charts and maps are drawn, whether its buttons work, that
# nothing is fetched, no error comes, and that text which looks like markup stays text. Needs
# build/release and Chromium; without a browser it says so and succeeds.
#   scripts/test-report.sh
set -eu
cd "$(dirname "$0")/.."
attend=$PWD/build/release/src/attend/attend
[ -x "$attend" ] || {
  echo "test-report: build/release has no attend: run make first" >&2
  exit 1
}
browser=
for each in chromium chromium-browser google-chrome; do
  [ -n "$browser" ] || browser=$(command -v "$each" || true)
done
[ -n "$browser" ] || {
  echo "test-report: skipped, as there is no browser: install chromium"
  exit 0
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
cd "$work"

# A toy language, and text that a careless page would take for its own.
awk 'BEGIN {
  split("one two three four five six seven", word, " ")
  for (i = 0; i < 200; i++) {
    line = ""
    for (j = 0; j < 3 + i % 4; j++) line = line (j ? " " : "") word[1 + (i * 5 + j * j + j) % 7]
    print line
  }
}' >train.a
hostile='</script><script>window.hostile = 1</script> {{data}}'
hostile="$hostile <img src=x onerror='window.hostile = 1'>"
head -n 6 train.a >valid.a
echo "$hostile" >>valid.a
for text in train valid; do tr '[:lower:]' '[:upper:]' <"$text.a" >"$text.b"; done

run_of() { # run_of FOLDER OPTION...
  folder=$1
  shift
  "$attend" train --quiet --run "$folder" --preset tiny --layers 2 --d-model 32 --d-ff 64 \
    --heads 2 --vocabulary-size 300 --batch-tokens 300 --train-source train.a --train-target train.b \
    --valid-source valid.a --valid-target valid.b --stop-after 150u --log-every 5 \
    --validate-every 30u --warmup 20 "$@"
}
first="a<b onclick='window.hostile=1'>&amp;"
run_of "$first" --learning-rate 0.005
run_of second --learning-rate 0.01
"$attend" report --quiet "$first" second --samples 9 --output page.html

# What looks at the page from within: the first part before all other scripts, the second behind.
cat >before.html <<'END'
<script>
window.problems = [];
addEventListener("error", event => problems.push(String(event.message || event.target)), true);
addEventListener("securitypolicyviolation", event => problems.push("policy: " + event.blockedURI));
</script>
END
cat >behind.html <<'END'
<script>
const inked = canvas => {
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  let count = 0;
  for (let i = 3; i < pixels.length; i += 4) count += pixels[i] > 0;
  return count;
};
const expect = (what, holds) => { if (!holds) problems.push("failed: " + what); };
const canvases = [...document.querySelectorAll("canvas")];
const pictures = () => canvases.map(canvas => canvas.toDataURL()).join();
expect("8 charts", canvases.length === 8);
for (const canvas of canvases) {
  expect(canvas.getAttribute("aria-label") + " is drawn", inked(canvas) > 500);
}
for (const button of document.querySelectorAll(".segments button:not([aria-pressed=true]), .key")) {
  const before = pictures();
  button.click();
  expect(button.textContent + " changes the charts", pictures() !== before);
  if (button.classList.contains("key")) button.click();
}
const cells = () => document.querySelectorAll(".map .cell").length;
expect("an attention map", cells() > 4);
const thumbs = [...document.querySelectorAll(".thumb")];
expect("2 layers of 2 heads and a mean", thumbs.length === 6);
for (const thumb of thumbs) {
  const before = document.querySelector(".map").outerHTML;
  const chosen = thumb.getAttribute("aria-pressed") === "true";
  thumb.click();
  expect("a head is chosen", chosen || document.querySelector(".map").outerHTML !== before);
}
expect("9 samples or all lines", document.querySelectorAll(".sample").length === 7);
const rows = [...document.querySelectorAll("tr")].map(row => row.textContent);
expect("recipes that differ", rows.some(row => row.startsWith("learning_rate0.0050.01")));
const hostile = "<\/script><script>window.hostile = 1<\/script> {" + "{data}} <img src=x";
expect("hostile text is shown", document.body.innerText.includes(hostile));
expect("hostile text is text", window.hostile === undefined && document.images.length === 0);
expect("nothing is fetched", performance.getEntriesByType("resource").length === 0);
expect("it fits a narrow window", document.documentElement.scrollWidth <= innerWidth);
document.documentElement.dataset.verdict = problems.length === 0 ? "well" : problems.join("; ");
</script>
END
sed -e '/<meta charset/r before.html' page.html | awk '
  /^<\/body>$/ { while ((getline line < "behind.html") > 0) print line } { print }' >probed.html

failed=0
for size in 1200,900 500,900; do
  # What Chromium itself says on stderr is about the machine; the page's errors are marked CONSOLE.
  "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$work/profile" \
    --enable-logging=stderr --window-size="$size" --virtual-time-budget=5000 --dump-dom \
    "file://$work/probed.html" >dom.html 2>log.txt || {
    cat log.txt >&2
    echo "test-report: $browser failed" >&2
    exit 1
  }
  verdict=$(sed -n 's/.*<html[^>]* data-verdict="\([^"]*\)".*/\1/p' dom.html)
  if [ "$verdict" != well ] || grep -q CONSOLE log.txt; then
    grep CONSOLE log.txt >&2 || true
    echo "test-report: at $size: ${verdict:-the page did not come to its end}" >&2
    failed=1
  fi
done
[ "$failed" = 0 ] && echo "test-report: the page is drawn, works, and fetches nothing ($browser)"
exit "$failed"
