/** The tools of an envelope for MCP clients. The client is the agent: policy, sandbox and record are those of any agent. */
import type { OutsideResult } from "@heddle/agent";
import type { InputPart } from "@heddle/protocol";
import { EnvelopeSession, type EnvelopeSessionOptions } from "./envelope-session.ts";
import { failureResult, type SurfacePart, type SurfaceResult, type ToolSurface } from "./surface.ts";

const INSTRUCTIONS =
  "These tools work in a sandbox, within an envelope that says what they may do; every call is recorded. What is refused says " +
  "why. Where there is a tool hop, it asks for another envelope; the list of tools changes with it.";

export interface EnvelopeSurface extends ToolSurface {
  readonly session: EnvelopeSession;
}

export function envelopeSurface(options: EnvelopeSessionOptions): EnvelopeSurface {
  const session = new EnvelopeSession(options);
  return {
    session,
    instructions: INSTRUCTIONS,
    async list() {
      const { tools } = await session.surface();
      return tools.map(({ name, description, parameters = {} }) => ({ name, description, inputSchema: parameters }));
    },
    async call(call) {
      try {
        return resultOf(await session.call(call));
      } catch (error) {
        return failureResult(error, options.log);
      }
    },
    onChange: (listener) => session.onChange(listener),
    [Symbol.asyncDispose]: () => session[Symbol.asyncDispose](),
  };
}

function resultOf({ outcome, output, failure, added = [] }: OutsideResult): SurfaceResult {
  const failed: readonly SurfacePart[] =
    failure === undefined ? [] : [{ type: "text", text: JSON.stringify({ error: failure }) }];
  const said = added.flatMap((input) => [{ type: "text" as const, text: "Added by a user:" }, ...input.map(partOf)]);
  return { content: [...failed, ...output.map(partOf), ...said], isError: outcome !== "ok" };
}

function partOf(part: InputPart): SurfacePart {
  return part.type === "text"
    ? { type: "text", text: part.text }
    : { type: "image", data: part.base64, mimeType: part.mediaType };
}
