/** One request and its JSON answer. Nothing is repeated here; a request that may be repeated needs a client id. */
import { HeddleApiError } from "./api-error.ts";

export interface ClientOptions {
  /** Where the server listens, such as `http://127.0.0.1:4617`. */
  readonly url: string;
  readonly token: string;
  /** `fetch` of another library or a test. */
  readonly fetch?: typeof fetch;
}

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

export interface Asking {
  readonly query?: Query;
  readonly body?: unknown;
  /** In place of `body`: JSON lines, as they are. */
  readonly lines?: string | Uint8Array<ArrayBuffer> | Blob | ReadableStream<Uint8Array>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

export type Call = Pick<Asking, "signal">;

export class Http {
  readonly #base: URL;
  readonly #token: string | undefined;
  readonly #fetch: typeof fetch;

  /** Without a token only what is public can be asked. */
  constructor({ url, token, fetch: given }: Omit<ClientOptions, "token"> & Partial<Pick<ClientOptions, "token">>) {
    this.#base = new URL(url.endsWith("/") ? url : `${url}/`);
    this.#token = token;
    // Called without its window a browser's fetch refuses.
    this.#fetch = given ?? globalThis.fetch.bind(globalThis);
  }

  async json<T>(method: string, path: string, asking: Asking = {}): Promise<T> {
    const response = await this.open(method, path, asking);
    return (await response.json()) as T;
  }

  /** Resolves when the head of a good answer is in; the body is the caller's. */
  async open(
    method: string,
    path: string,
    { query = {}, body, lines, headers = {}, signal }: Asking = {},
  ): Promise<Response> {
    const url = new URL(path.replace(/^\//, ""), this.#base);
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) url.searchParams.set(name, String(value));
    let response: Response;
    try {
      response = await this.#fetch(url, {
        method,
        headers: {
          ...(this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` }),
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...(lines === undefined ? {} : { "content-type": "application/x-ndjson" }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        // Whoever sends a stream says that the answer comes after it.
        ...(lines === undefined ? {} : { body: lines, duplex: "half" }),
        ...(signal === undefined ? {} : { signal }),
        // A redirect would carry the token to another server.
        redirect: "error",
      });
    } catch (cause) {
      signal?.throwIfAborted();
      throw new HeddleApiError("server.unreachable", `cannot reach ${url.origin}`, { cause });
    }
    if (response.ok) return response;
    throw await refusalOf(response);
  }
}

async function refusalOf(response: Response): Promise<HeddleApiError> {
  const { status } = response;
  const answer: unknown = await response.json().catch(() => undefined);
  const error = isRecord(answer) && isRecord(answer["error"]) ? answer["error"] : {};
  const code = typeof error["code"] === "string" ? error["code"] : "server.failed";
  const message = typeof error["message"] === "string" ? error["message"] : `the server answered ${status}`;
  return new HeddleApiError(code, message, { status, details: isRecord(error["details"]) ? error["details"] : {} });
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
