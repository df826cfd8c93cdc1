/** Reasoning in the chunks of Chat Completions, under the many names that servers give it. */
import { list, record, text, type Fields, type Json } from "./untrusted.ts";

export interface Reasoning {
  /** Reads the reasoning of a delta under any of its names; returns the text to show. */
  take(delta: Fields): readonly string[];
  whole(): { part: { kind: "reasoning"; summary: string[]; text: string }; sendBack: Fields } | undefined;
}

export function createReasoning(): Reasoning {
  let shown = "";
  let field: "reasoning_content" | "reasoning" | "content" | undefined;
  const details: Record<string, Json>[] = [];

  function takeDetail(value: Json): void {
    const detail = record(value);
    if (detail === undefined) return;
    const last = details.at(-1);
    if (last === undefined || last["type"] !== detail["type"] || last["index"] !== detail["index"]) {
      details.push({ ...detail });
      return;
    }
    for (const [name, next] of Object.entries(detail)) {
      const before = last[name];
      const grows = name === "text" || name === "summary" || name === "data";
      last[name] = grows && typeof before === "string" && typeof next === "string" ? before + next : (next ?? before);
    }
  }

  return {
    take(delta) {
      for (const detail of list(delta["reasoning_details"])) takeDetail(detail);
      const pieces = {
        reasoning_content: text(delta["reasoning_content"]),
        reasoning: text(delta["reasoning"]),
        content: thinkingIn(delta["content"]),
      };
      for (const name of ["reasoning_content", "reasoning", "content"] as const) {
        const piece = pieces[name] ?? "";
        if (piece === "") continue;
        field = name;
        shown += piece;
        return [piece];
      }
      return [];
    },
    whole() {
      if (shown === "" && details.length === 0) return undefined;
      const sendBack =
        details.length > 0
          ? { reasoning_details: details }
          : field === "reasoning_content"
            ? { reasoning_content: shown }
            : {};
      return { part: { kind: "reasoning", summary: [], text: shown }, sendBack };
    },
  };
}

/** The text of a delta: a string, or a list of parts, as Mistral sends it. */
export function textIn(content: Json): string {
  if (!Array.isArray(content)) return text(content) ?? "";
  return content.map((part) => text(part) ?? (isThinking(part) ? "" : (text(record(part)?.["text"]) ?? ""))).join("");
}

function thinkingIn(content: Json): string {
  return list(content)
    .filter(isThinking)
    .map((part) => textIn(record(part)?.["thinking"]))
    .join("");
}

function isThinking(part: Json): boolean {
  return record(part)?.["type"] === "thinking";
}
