/** Serves one thread, appends so many events when told to, and says what that cost it. */
import { openHttpWorld } from "./http-world.ts";

interface Order {
  readonly events: number;
  readonly batch: number;
  /** 0: as fast as it goes. */
  readonly everyMs: number;
}

const world = await openHttpWorld();
const threadId = await world.newThread();
process.send?.({ url: world.url, token: world.tokens.viewer, threadId });
process.on("message", (message: Order | "cpu") => {
  if (message === "cpu") {
    const { user, system } = process.cpuUsage(begun);
    process.send?.({ cpuMs: (user + system) / 1_000 });
    return;
  }
  write(message).catch((error: unknown) => {
    process.exitCode = 1;
    process.stderr.write(String(error));
  });
});
process.on("disconnect", () => {
  const end = (): never => process.exit(0);
  world[Symbol.asyncDispose]().then(end, end);
});
let begun = process.cpuUsage();

async function write({ events, batch, everyMs }: Order): Promise<void> {
  begun = process.cpuUsage();
  for (let count = 0; count < events; count += batch) {
    await world.append(threadId, batch, 100);
    if (everyMs > 0) await new Promise((resolve) => void setTimeout(resolve, everyMs));
  }
}
