/** A process that runs `heddle app-server` once after the other (packages/cli/test/app-servers-in-child.ts). */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { PassThrough, Writable } from "node:stream";
import type { Start, Started, StartOptions } from "../conformance/app-server/start.ts";

/** As the child declares them. */
type ToServer = { readonly start: StartOptions } | { readonly input: string } | { readonly end: true };
type FromServer = { readonly output: string } | { readonly exit: number };

export interface AppServerHost extends AsyncDisposable {
  /** One server at a time. One that is killed before it ends takes the process with it, and the next has a new one. */
  readonly start: Start;
}

export function openAppServerHost(program: string): AppServerHost {
  let host: ChildProcess | undefined;
  const spawnHost = (): ChildProcess => {
    const child = spawn(process.execPath, [program], { stdio: ["ignore", "ignore", "inherit", "ipc"] });
    return child.once("exit", () => {
      if (host === child) host = undefined;
    });
  };
  return {
    start(options) {
      const child = (host ??= spawnHost());
      const server = serve(child, options);
      return {
        ...server,
        kill() {
          if (server.isOver()) return;
          child.kill("SIGKILL");
          if (host === child) host = undefined;
        },
      };
    },
    async [Symbol.asyncDispose]() {
      if (host === undefined) return;
      const ended = once(host, "exit");
      host.kill("SIGKILL");
      await ended;
    },
  };
}

function serve(child: ChildProcess, start: StartOptions): Omit<Started, "kill"> & { isOver(): boolean } {
  const ended = Promise.withResolvers<number | string>();
  const output = new PassThrough();
  let isOver = false;
  const end = (how: number | string): void => {
    isOver = true;
    child.off("message", take).off("exit", onExit);
    // When the last of it has been read.
    output.once("end", () => ended.resolve(how)).end();
  };
  const take = (message: FromServer): void => {
    if ("output" in message) output.write(message.output);
    else end(message.exit);
  };
  const onExit = (code: number | null, signal: NodeJS.Signals | null): void => end(signal ?? String(code));
  const tell = (message: ToServer): void => {
    if (!isOver) child.send(message);
  };
  child.on("message", take).on("exit", onExit);
  tell({ start });
  return {
    input: new Writable({
      decodeStrings: false,
      write(text: string | Buffer, _encoding, done) {
        tell({ input: String(text) });
        done();
      },
      final(done) {
        tell({ end: true });
        done();
      },
    }),
    output,
    ended: ended.promise,
    isOver: () => isOver,
  };
}
