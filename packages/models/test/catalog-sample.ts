/** A catalog as models.dev would serve it: as many harmless providers as a real one has at least, and those a test adds. */
export function sampleModel(more: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return {
    name: "A model",
    tool_call: true,
    limit: { context: 128_000, output: 8192 },
    modalities: { input: ["text"], output: ["text"] },
    cost: { input: 1, output: 2, cache_read: 0.1 },
    release_date: "2026-06-01",
    ...more,
  };
}

export function sampleProvider(
  name: string,
  more: Readonly<Record<string, unknown>> = {},
): Readonly<Record<string, unknown>> {
  return {
    name,
    npm: "@ai-sdk/openai-compatible",
    api: `https://api.${name}.example/v1`,
    env: [`${name.replaceAll("-", "_").toUpperCase()}_API_KEY`],
    models: { "model-1": sampleModel() },
    ...more,
  };
}

export function sampleApi(more: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  const models = Object.fromEntries(Array.from({ length: 10 }, (_, index) => [`model-${index}`, sampleModel()]));
  const names = Array.from({ length: 10 }, (_, index) => `filler-${index}`);
  return { ...Object.fromEntries(names.map((name) => [name, sampleProvider(name, { models })])), ...more };
}
