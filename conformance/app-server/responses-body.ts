/** The events of one answer of the Responses API whose items are given whole: for items that a script cannot describe. */
export function responsesBody(number: number, items: readonly object[]): string {
  const response = { id: `resp_${number}`, object: "response", output: items };
  const usage = {
    input_tokens: 100,
    input_tokens_details: { cached_tokens: 40, cache_write_tokens: 0 },
    output_tokens: 20,
    output_tokens_details: { reasoning_tokens: 5 },
    total_tokens: 120,
  };
  const events = [
    { type: "response.created", response: { ...response, status: "in_progress", output: [] } },
    ...items.map((item, output_index) => ({ type: "response.output_item.done", output_index, item })),
    { type: "response.completed", response: { ...response, status: "completed", usage } },
  ];
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
}
