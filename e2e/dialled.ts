/** A client of a server's WebSocket, in either dialect of JSON-RPC. */
export interface Received {
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: unknown;
  readonly error?: { readonly message: string };
}

export interface Dialled extends Disposable {
  /** The result; an error fails the test. */
  call(method: string, params?: unknown): Promise<unknown>;
  answer(id: Received["id"], result: unknown): void;
  /** The first that fits, of those that came and those to come. */
  waitFor(fits: (received: Received) => boolean): Promise<Received>;
}

export async function dial(url: string, token: string): Promise<Dialled> {
  const socket = new WebSocket(`${url.replace(/^http/, "ws")}/?token=${token}`);
  const received: Received[] = [];
  const waiting = new Set<() => void>();
  socket.addEventListener("message", ({ data }) => {
    received.push(JSON.parse(String(data)) as Received);
    for (const wake of waiting) wake();
    waiting.clear();
  });
  await new Promise<void>((resolve, reject) => {
    socket.addEventListener("open", () => resolve());
    socket.addEventListener("error", () => reject(new Error(`nobody answers at ${url}`)));
  });
  const waitFor = async (fits: (one: Received) => boolean): Promise<Received> => {
    for (;;) {
      const found = received.find(fits);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => {
        waiting.add(resolve);
      });
    }
  };
  let next = 1;
  return {
    waitFor,
    async call(method, params = {}) {
      const id = next++;
      socket.send(JSON.stringify({ id, method, params }));
      const { result, error } = await waitFor((one) => one.id === id && one.method === undefined);
      if (error !== undefined) throw new Error(`${method}: ${error.message}`);
      return result;
    },
    answer: (id, result) => socket.send(JSON.stringify({ id, result })),
    [Symbol.dispose]: () => socket.close(),
  };
}

/** The handshake of app-server. */
export async function begin(client: Dialled): Promise<void> {
  const clientInfo = { name: "probe", title: "Probe", version: "0.0.1" };
  await client.call("initialize", { clientInfo, capabilities: { experimentalApi: true } });
}
