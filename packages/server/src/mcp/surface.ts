/**
 * What an MCP client can list and call, whatever carries the protocol. There are two kinds: the tools of Heddle itself, and
 * those of an envelope.
 */
import { toHeddleError } from "@heddle/protocol";

export type JsonObject = Readonly<Record<string, unknown>>;

export interface SurfaceTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonObject;
  readonly outputSchema?: JsonObject | undefined;
  /** It changes nothing; absent: it may. */
  readonly isReadOnly?: boolean | undefined;
}

export interface SurfaceCall {
  readonly name: string;
  readonly arguments: JsonObject;
  /** The client has cancelled the call, or has gone. */
  readonly signal: AbortSignal;
  /** For the user of the client, while the call runs. */
  readonly progress: (message: string) => void;
}

export type SurfacePart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image"; readonly data: string; readonly mimeType: string };

export interface SurfaceResult {
  readonly content: readonly SurfacePart[];
  readonly structured?: JsonObject | undefined;
  readonly isError: boolean;
}

export interface ToolSurface extends AsyncDisposable {
  /** For the agent of the client, with the list of tools. */
  readonly instructions: string;
  list(): Promise<readonly SurfaceTool[]>;
  /** A failure is a result with a code. Throws only `tool.unknown`. */
  call(call: SurfaceCall): Promise<SurfaceResult>;
  /** Called when the list has changed, until it is disposed; absent: it never does. */
  readonly onChange?: (listener: () => void) => Disposable;
}

/** The code is for programs; the message says what to do. What is wrong inside goes to the log alone. */
export function failureResult(error: unknown, log: (line: string) => void): SurfaceResult {
  const { code, message, details } = toHeddleError(error);
  const isInternal = code === "internal";
  if (isInternal) log(`a call over MCP failed: ${message}`);
  const shown = isInternal ? "internal error; see the log of the server" : message;
  const known = isInternal || Object.keys(details).length === 0 ? {} : { details };
  return {
    content: [{ type: "text", text: JSON.stringify({ error: { code, message: shown, ...known } }) }],
    isError: true,
  };
}
