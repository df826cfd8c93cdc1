import { expect, test } from "vitest";
import { shapeResult } from "./results.ts";

test("text is told and kept; a long one keeps its beginning and its end", () => {
  const short = shapeResult({ content: [{ type: "text", text: "hi" }] });
  expect(short).toEqual({
    isError: false,
    output: [{ type: "text", text: "hi" }],
    result: { content: [{ type: "text", text: "hi" }] },
  });
  const long = shapeResult({ content: [{ type: "text", text: `begin${"x".repeat(100_000)}end` }] });
  const told = long.output[0]?.type === "text" ? long.output[0].text : "";
  expect(told).toMatch(/^beginx+\n\[\.\.\. \d+ bytes left out \.\.\.\]\nx+end$/);
  expect(Buffer.byteLength(told)).toBeLessThanOrEqual(32 * 1024);
});

test("many texts share one limit", () => {
  const { output } = shapeResult({
    content: Array.from({ length: 100 }, () => ({ type: "text" as const, text: "y".repeat(2000) })),
  });
  expect(Buffer.byteLength(JSON.stringify(output))).toBeLessThan(40 * 1024);
});

test("images become images, up to what a provider takes; other content is said in words", () => {
  const { output, result } = shapeResult({
    content: [
      { type: "image", mimeType: "image/png", data: "AAAA" },
      { type: "image", mimeType: "image/tiff", data: "AAAA" },
      { type: "image", mimeType: "image/png", data: "A".repeat(6 * 1024 * 1024) },
      { type: "image", mimeType: "image/png", data: "A".repeat(400_000) },
      { type: "audio", mimeType: "audio/wav", data: "AAAA" },
      { type: "resource_link", uri: "file:///x", name: "x" },
      { type: "resource", resource: { uri: "file:///y", text: "inside" } },
    ],
  });
  expect(output.map(({ type }) => type)).toEqual(["image", "text", "text", "image", "text", "text", "text"]);
  expect(output.at(-1)).toEqual({ type: "text", text: "[resource file:///y]\ninside" });
  // Large ones are not sent to everybody who watches.
  expect(JSON.stringify(result).length).toBeLessThan(2000);
});

test("structured content is kept when it fits, and told when there are no words", () => {
  expect(shapeResult({ content: [], structuredContent: { sum: 5 } })).toMatchObject({
    output: [{ type: "text", text: '{"sum":5}' }],
    result: { structuredContent: { sum: 5 } },
  });
  let deep: Record<string, unknown> = {};
  for (let depth = 0; depth < 5000; depth += 1) deep = { deep };
  expect(shapeResult({ content: [], structuredContent: deep }).result).toEqual({
    content: [],
  });
  expect(shapeResult({ content: [] }).output).toEqual([{ type: "text", text: "(the tool answered with nothing)" }]);
});
