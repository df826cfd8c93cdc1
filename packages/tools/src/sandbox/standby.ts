/**
 * Standbys: processes that have entered the sandbox ahead of the command and wait for it. Entering takes several programs one
 * after the other, and none of them depends on the command. The holder starts them, because it is inside already. At most one
 * waits at a time. An order is a script of one compound command, so that half of one does nothing.
 *
 *   asked ─▶ standing ─▶ taken (runs the command) ─▶ ended
 *     ├──▶ late: commands enter without one and do not wait again; it serves the first command after its arrival
 *     └──▶ gone: none is asked for any more, and commands enter without one
 */
import { closeSync, constants, openSync, readSync, rmSync, writeSync } from "node:fs";
import { Socket } from "node:net";
import { join } from "node:path";
import { attempt, codeOf } from "../attempt.ts";
import { SHELL_VARIABLE } from "../commands/environment.ts";
import { argumentsOf, childrenOf } from "../commands/proc-stat.ts";
import { sendSignal } from "../commands/process-tree.ts";
import type { HolderProcess } from "./holder-process.ts";
import type { CommandEnd, CommandInside } from "./sandbox.ts";

/** The capacity of a pipe, unless its user has very many. */
const MAX_ORDER_BYTES = 60 * 1024;
/** A standby on its way arrives before a command that enters now; on a busy machine that may take a moment. */
const COME_MS = 2000;
/** Marks its processes. */
const NAME = "heddle-standby";

export interface Order {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

type Running = Pick<CommandInside, "pid" | "outputFd" | "ended">;

interface Coming extends Pick<PromiseWithResolvers<void>, "promise" | "resolve"> {
  readonly number: string;
  isLate: boolean;
}

/** This end of its pipes. Each standby has its own, so that no command can forge the result of another. */
interface Streams {
  readonly order: number;
  readonly output: number;
  readonly status: number;
  readonly life: number;
}

interface Standing extends Pick<Streams, "order" | "output"> {
  readonly pid: number;
  readonly ended: Promise<CommandEnd>;
}

export class Standbys {
  readonly #holder: HolderProcess;
  #holderPid: number | undefined;
  #made = 0;
  #coming: Coming | undefined;
  #standing: Standing | undefined;
  /** False before the holder has its plan, after it has ended, and where a standby could not enter. */
  #isOpen = false;

  constructor(holder: HolderProcess) {
    this.#holder = holder;
    holder.onLine((line) => this.#onLine(line));
  }

  /** The holder has its plan and reads numbers from now on. */
  open(): void {
    this.#isOpen = true;
  }

  ask(): void {
    if (!this.#isOpen || this.#coming !== undefined || this.#standing !== undefined) return;
    this.#made += 1;
    const number = String(this.#made);
    this.#coming = { number, isLate: false, ...Promise.withResolvers<void>() };
    this.#holder.sendLine(number);
  }

  /** Lets the waiting standby run a command; undefined when there is none, or it cannot. */
  async take(order: Order): Promise<Running | undefined> {
    const script = orderScript(order);
    if (script === undefined) return undefined;
    if (this.#coming !== undefined) await this.#arrived(this.#coming);
    const standing = this.#standing;
    if (standing === undefined) return undefined;
    this.#standing = undefined;
    const { pid, order: orderFd, output: outputFd, ended } = standing;
    const isWhole = writtenWhole(orderFd, script);
    closeSync(orderFd);
    if (isWhole) return { pid, outputFd, ended };
    // It has received half an order, and does nothing yet.
    sendSignal(pid, "SIGKILL");
    closeSync(outputFd);
    return undefined;
  }

  /** The process inside that waits, also one on its way. */
  async waiting(): Promise<number | undefined> {
    if (this.#coming !== undefined) await this.#arrived(this.#coming);
    return this.#standing === undefined ? undefined : childrenOf(this.#standing.pid)[0];
  }

  /** The waiting one must not be used any more. */
  discard(): void {
    const standing = this.#standing;
    if (standing === undefined) return;
    this.#standing = undefined;
    sendSignal(standing.pid, "SIGKILL");
    for (const fd of [standing.order, standing.output]) closeSync(fd);
  }

  async #arrived(coming: Coming): Promise<void> {
    if (coming.isLate) return;
    const timer = setTimeout(() => {
      coming.isLate = true;
      coming.resolve();
    }, COME_MS);
    await coming.promise;
    clearTimeout(timer);
  }

  /** Where one could not enter, the next could not either. */
  #giveUp(): void {
    this.#isOpen = false;
    this.#coming?.resolve();
    this.#coming = undefined;
  }

  #onLine(line: string | undefined): void {
    if (line === undefined) return this.#giveUp();
    const [word, number = ""] = line.split(" ");
    if (word === "ready") this.#holderPid = Number(number);
    if (number !== this.#coming?.number) return;
    if (word === "standing") this.#receive(this.#coming);
    if (word === "gone") this.#giveUp();
  }

  #receive({ number, resolve }: Coming): void {
    this.#coming = undefined;
    resolve();
    try {
      const pid = this.#findPid(number);
      const { order, output, ...end } = this.#openStreams(number);
      const standing: Standing = { pid, order, output, ended: endOf(end, () => this.#drop(standing)) };
      this.#standing = standing;
    } catch {
      this.#isOpen = false;
    }
  }

  /** The child's arguments tell which standby a process belongs to. */
  #findPid(number: string): number {
    const pid = childrenOf(this.#holderPid ?? 0).find((carrier) =>
      childrenOf(carrier).some((first) => argumentsOf(first).slice(-2).join(" ") === `${NAME} ${number}`),
    );
    if (pid === undefined) throw new Error("the standby does not respond");
    return pid;
  }

  /** It has opened its ends, so these open without waiting. */
  #openStreams(number: string): Streams {
    const opened: number[] = [];
    const open = (name: keyof Streams, direction: number): number => {
      const path = join(this.#holder.scratch.standbys, `${number}.${name}`);
      const fd = openSync(path, direction | constants.O_NONBLOCK);
      opened.push(fd);
      rmSync(path, { force: true });
      return fd;
    };
    try {
      const streams = {
        order: open("order", constants.O_WRONLY),
        output: open("output", constants.O_RDONLY),
        status: open("status", constants.O_RDONLY),
        life: open("life", constants.O_RDONLY),
      };
      // A pipe reports its end only if the other side was open when it was opened.
      if (!isHeld(streams.life)) throw new Error("the standby has ended");
      return streams;
    } catch (error) {
      for (const fd of opened) closeSync(fd);
      throw error;
    }
  }

  #drop(standing: Standing): void {
    if (this.#standing !== standing) return;
    this.#standing = undefined;
    for (const fd of [standing.order, standing.output]) closeSync(fd);
  }
}

/**
 * `life` is held open by a process that no command can reach, so its end is the end of the command and all it started.
 * The exit code has been written by then, unless its shell was killed. A command can write to `status` too, so only a
 * valid code is read.
 */
function endOf({ status, life }: Pick<Streams, "status" | "life">, onEnd: () => void): Promise<CommandEnd> {
  const { promise, resolve } = Promise.withResolvers<CommandEnd>();
  const socket = new Socket({ fd: life, readable: true, writable: false });
  socket.once("error", () => undefined);
  socket.once("close", () => {
    const [code] = /^\d{1,3}$/.exec(readNow(status)) ?? [];
    closeSync(status);
    onEnd();
    resolve(
      code === undefined ? { exitCode: undefined, signal: "SIGKILL" } : { exitCode: Number(code), signal: undefined },
    );
  });
  socket.resume();
  return promise;
}

/** Does not wait. */
function readNow(fd: number): string {
  const buffer = Buffer.alloc(16);
  return attempt(() => buffer.toString("latin1", 0, readSync(fd, buffer))) ?? "";
}

/** The other end of an empty pipe is open. */
function isHeld(fd: number): boolean {
  try {
    return readSync(fd, Buffer.alloc(1)) > 0;
  } catch (error) {
    return codeOf(error) === "EAGAIN";
  }
}

/**
 * How the holder lets a standby enter. Its last program is a shell that reads its order from a pipe, so nothing has to
 * be opened later. It has its own session, so that a command that signals its group reaches only itself. `inside`: the
 * programs between the holder and a command.
 */
export function enterScript(inside: (mapsUser: boolean) => readonly string[]): string {
  const enter = (mapsUser: boolean): string => {
    const entering = [...inside(mapsUser), "sh", "-s", NAME].map(quoted).join(" ");
    return `setsid --fork ${entering} "$1" 4>"$streams.life" 8>&1 9>"$streams.status" >"$streams.output" <&6 3<&- 5<&- 6<&- 7<&-`;
  };
  return `if [ "$maps" = maps ]; then\n${enter(true)}\nelse\n${enter(false)}\nfi\n`;
}

/**
 * Does what INIT_SCRIPT does, and writes the exit code. undefined: it cannot be expressed, and the command enters
 * without a standby.
 */
function orderScript({ argv, cwd, env }: Order): string | undefined {
  const names = Object.keys(env);
  if (names.some((name) => !/^[A-Za-z_]\w*$/.test(name) || SHELL_VARIABLE.test(name))) return undefined;
  const script = [
    "{",
    "exec </dev/null",
    "unset LC_ALL PATH OLDPWD",
    ...names.map((name) => `export ${name}=${quoted(env[name] ?? "")}`),
    `if cd -P -- ${quoted(cwd)}; then`,
    "exec 8>&2 2>/dev/null",
    `(exec 2>&8 8>&- 9>&-; exec ${argv.map(quoted).join(" ")})`,
    "else (exit 126); fi",
    `printf %s "$?" >&9`,
    "exit",
    "}\n",
  ].join("\n");
  return Buffer.byteLength(script) > MAX_ORDER_BYTES || script.includes("\0") ? undefined : script;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function writtenWhole(fd: number, text: string): boolean {
  return attempt(() => writeSync(fd, text)) === Buffer.byteLength(text);
}
