/** A server that lists models, each path its own; it can be slow, refuse, and remembers who asked. */
import { once } from "node:events";
import { createServer } from "node:http";

export interface ListRequest {
  readonly path: string;
  readonly authorization: string | undefined;
  readonly ifNoneMatch: string | undefined;
}

export interface ListAnswer {
  readonly status?: number;
  readonly body?: unknown;
  /** In place of a body in JSON. */
  readonly text?: string;
  readonly etag?: string;
  /** Never answers. */
  readonly isSilent?: boolean;
}

export interface ListServer extends AsyncDisposable {
  readonly url: string;
  readonly requests: readonly ListRequest[];
  /** From now on; with a path, only there. */
  answer(answer: ListAnswer, path?: string): void;
}

export async function startListServer(): Promise<ListServer> {
  const requests: ListRequest[] = [];
  const answers = new Map<string, ListAnswer>();
  const server = createServer((request, response) => {
    const path = (request.url ?? "").split("?")[0] ?? "";
    const { authorization, "if-none-match": ifNoneMatch } = request.headers;
    requests.push({ path, authorization, ifNoneMatch });
    const answer = answers.get(path) ?? answers.get("") ?? {};
    if (answer.isSilent === true) return;
    const isSame = answer.etag !== undefined && answer.etag === ifNoneMatch;
    const headers = { "content-type": "application/json", ...(answer.etag === undefined ? {} : { etag: answer.etag }) };
    response.writeHead(isSame ? 304 : (answer.status ?? 200), headers);
    response.end(
      isSame
        ? undefined
        : (answer.text ?? JSON.stringify(answer.body ?? { data: [{ id: `model-of-${path.split("/")[1]}` }] })),
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    answer: (answer, path = "") => void answers.set(path, answer),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
