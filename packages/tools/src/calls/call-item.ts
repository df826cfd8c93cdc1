/** Tools with the usual defaults: they take a JSON object, show themselves as a plain call, and change nothing. */
import type { ItemOf } from "@heddle/protocol";
import type { CallContext, Tool, ToolContext } from "./tool.ts";

type Own<A> = Pick<Tool<A>, "name" | "description" | "input"> & Partial<Tool<A>>;

export function jsonTool<A>(tool: Own<A> & Pick<Tool<A>, "run">): Tool<A> {
  return {
    shape: "json",
    effects: ["read"],
    isReadOnly: () => true,
    deadlineMs: () => 30_000,
    paths: () => [],
    describe: (args, context) => callItem(tool.name, args, context),
    question: (args, { callId, itemId }) => ({ kind: "tool", callId, itemId, tool: tool.name, arguments: args }),
    ...tool,
  };
}

export function textTool<A>({
  run: answer,
  ...tool
}: Omit<Own<A>, "run"> & { readonly run: (args: A, context: ToolContext) => Promise<string> }): Tool<A> {
  return jsonTool<A>({
    ...tool,
    async run(args, context) {
      const text = await answer(args, context);
      const item: ItemOf<"toolCall"> = { ...callItem(tool.name, args, context), status: "completed", output: text };
      return { isError: false, item, output: [{ type: "text", text }] };
    },
  });
}

export function callItem(tool: string, args: unknown, { callId, itemId }: CallContext): ItemOf<"toolCall"> {
  return { type: "toolCall", id: itemId, callId, tool, arguments: args, status: "inProgress" };
}
