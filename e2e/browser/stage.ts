/**
 * A served home, a model that plays scripts by a mark in what it is asked, and a browser: opened once for a file of tests.
 * A seat is a browser of its own that is logged in; at its end it fails for anything the page's policy had to refuse, and
 * for every uncaught error.
 */
import path from "node:path";
import { HeddleClient } from "@heddle/client";
import { startModelServer, type ModelServer, type RecordedRequest } from "@heddle/models/testing";
import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { inject } from "vitest";
import { serve, type Served } from "../served-world.ts";
import { openWorld, type World } from "../world.ts";
import { launch, type UnpackedChromium } from "./chromium.ts";

type Step = Awaited<ReturnType<NonNullable<NonNullable<Parameters<typeof startModelServer>[0]>["respond"]>>>;
export type Steps = readonly (Step | (() => Promise<Step>))[];

export interface Stage extends AsyncDisposable {
  readonly world: World;
  readonly model: ModelServer;
  readonly server: Served;
  readonly browser: Browser;
  /** What the model says whenever `[[mark]]` is in a request, one step for each answer. */
  plays(mark: string, steps: Steps): void;
  /** Ends the server by a kill and starts it again on the same port. */
  restart(): Promise<void>;
  sit(options?: SeatOptions): Promise<Seat>;
}

export interface SeatOptions extends BrowserContextOptions {
  /** Where to go after the login. */
  readonly at?: string;
  readonly token?: string;
  /** Another address that leads to the server. */
  readonly url?: string;
  /** The page's clock can be moved, and begins here; one that is far from the real one is wrong. */
  readonly clock?: number;
}

export interface Seat extends AsyncDisposable {
  readonly context: BrowserContext;
  readonly page: Page;
  /** What the policy refused and what was thrown; a test that provokes some takes them out. */
  readonly complaints: string[];
}

/** A busy machine takes its time, and a server that has just begun with ten thousand tasks too. */
const LOGIN_MS = 120_000;
const WIDE = { width: 1440, height: 900 } as const;

export interface StageOptions {
  /** Outside of a run of the tests the browser is given. */
  readonly unpacked?: UnpackedChromium;
  /** What `config.toml` in the home says. */
  readonly config?: (world: World) => Promise<string>;
  /** How much the model says at once. */
  readonly deltaChars?: number;
}

export async function openStage({ unpacked, config, ...speech }: StageOptions = {}): Promise<Stage> {
  await using opened = new AsyncDisposableStack();
  const world = opened.use(await openWorld());
  if (config !== undefined) await world.file(path.join("home", "config.toml"), await config(world));
  const scripts = new Map<string, Steps>();
  const model = opened.use(await startModelServer({ ...speech, respond: (request) => played(scripts, request) }));
  const browser = opened.adopt(await launch(unpacked ?? inject("chromium")), (one) => one.close());
  let server = await serve(world, model);
  opened.defer(() => server[Symbol.asyncDispose]());
  const whole = opened.move();
  return {
    world,
    model,
    browser,
    get server() {
      return server;
    },
    plays: (mark, steps) => void scripts.set(mark, steps),
    async restart() {
      await server[Symbol.asyncDispose]();
      server = await serve(world, model);
    },
    sit: (options) => takeSeat(browser, server, options),
    [Symbol.asyncDispose]: () => whole.disposeAsync(),
  };
}

async function played(scripts: ReadonlyMap<string, Steps>, { source, answers }: RecordedRequest): Promise<Step> {
  const mark = /\[\[([\w-]+)\]\]/.exec(source)?.[1] ?? "";
  const step = scripts.get(mark)?.[answers] ?? { text: "There is nothing more to do." };
  return typeof step === "function" ? await step() : step;
}

async function takeSeat(browser: Browser, server: Served, options: SeatOptions = {}): Promise<Seat> {
  const { at = "/now", token = server.token, url = server.url, clock, ...rest } = options;
  const context = await browser.newContext({ viewport: WIDE, timezoneId: "UTC", ...rest });
  if (clock !== undefined) await context.clock.install({ time: clock });
  const complaints: string[] = [];
  const page = await context.newPage();
  await listenFor(page, complaints);
  await logIn(page, { url, token });
  if (at !== "/now") await page.goto(`${url}${at}`);
  await page.locator("#main h1").first().waitFor();
  return {
    context,
    page,
    complaints,
    async [Symbol.asyncDispose]() {
      await context.close();
      if (complaints.length > 0) throw new Error(`the page complained: ${complaints.join("\n")}`);
    },
  };
}

async function listenFor(page: Page, complaints: string[]): Promise<void> {
  page.on("pageerror", (error) => complaints.push(`thrown: ${error.message}`));
  page.on("console", (message) => {
    if (/content security policy|trusted ?(?:type|script|html)/i.test(message.text())) complaints.push(message.text());
  });
  await page.exposeFunction("heardViolation", (text: string) => complaints.push(text));
  await page.addInitScript(() => {
    addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI }) => {
      const { heardViolation } = globalThis as unknown as { heardViolation: (text: string) => void };
      heardViolation(`${violatedDirective}: ${blockedURI}`);
    });
  });
}

/** With a code, as `heddle dashboard` prints it. */
export async function loginAddress({ url, token }: Pick<Served, "url" | "token">): Promise<string> {
  const code = await new HeddleClient({ url, token }).access.createCode();
  return `${url}${code.path}`;
}

async function logIn(page: Page, login: Pick<Served, "url" | "token">): Promise<void> {
  await page.goto(await loginAddress(login));
  await page.waitForURL(`${login.url}/now`, { timeout: LOGIN_MS });
}
