import { expect, test } from "vitest";
import { counter, expose, gauge, histogram, MAX_SERIES } from "./families.ts";

test("counters, gauges and histograms are in the text format, with labels escaped", () => {
  const requests = counter("requests_total", "Requests,\nby \\ path");
  requests.add({ path: 'a "quoted"\\\nname', code: "" });
  requests.add({ path: 'a "quoted"\\\nname', code: "" }, 2);
  const seconds = histogram("seconds", "How long", [0.1, 1]);
  for (const value of [0.1, 0.5, 7]) seconds.observe({ outcome: "ok" }, value);
  const free = gauge("free", "Room", [[{}, 12.5]]);
  expect(expose([requests, seconds, free])).toBe(`# HELP requests_total Requests,\\nby \\\\ path
# TYPE requests_total counter
requests_total{path="a \\"quoted\\"\\\\\\nname",code=""} 3
# HELP seconds How long
# TYPE seconds histogram
seconds_bucket{outcome="ok",le="0.1"} 1
seconds_bucket{outcome="ok",le="1"} 2
seconds_bucket{outcome="ok",le="+Inf"} 3
seconds_sum{outcome="ok"} 7.6
seconds_count{outcome="ok"} 3
# HELP free Room
# TYPE free gauge
free 12.5
`);
});

test("a metric that nothing was counted for is named, without a value", () => {
  expect(expose([counter("none_total", "Nothing")])).toBe("# HELP none_total Nothing\n# TYPE none_total counter\n");
});

test("labels are bounded: what is more than a number of series is counted under other", () => {
  const tokens = counter("tokens_total", "Tokens");
  for (let model = 0; model < 3 * MAX_SERIES; model += 1) tokens.add({ model: `m${model}` });
  const lines = tokens.lines();
  expect(lines).toHaveLength(MAX_SERIES + 1);
  expect(lines.at(-1)).toBe(`tokens_total{model="other"} ${2 * MAX_SERIES}`);
});
