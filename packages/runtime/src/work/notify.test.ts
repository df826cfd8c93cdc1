import { describe, expect, test } from "vitest";
import { FOR_PEOPLE, NOTIFICATION_NAMES } from "@heddle/tasks";
import { inboxOf } from "./inbox.ts";
import { notifyingOf } from "./notify.ts";
import type { ConfigFile } from "../config/schema.ts";

const shown = (config: ConfigFile, env: NodeJS.ProcessEnv = {}) =>
  notifyingOf(config, env).sinks.map(({ name, kind, target, events }) => ({ name, kind, target, events: [...events] }));

describe("[notify.NAME]", () => {
  test("programs are told everything, people what they wait for or must answer", () => {
    const url = "https://hooks.example/services/secret";
    expect(
      shown({
        notify: {
          program: { url },
          team: { type: "slack", url },
          files: { type: "file", folder: "/var/told" },
          me: { type: "desktop", events: "TASK_FAILED, TASK_VERIFIED" },
          off: { url, enabled: false },
        },
      }),
    ).toEqual([
      { name: "program", kind: "webhook", target: "https://hooks.example/…", events: [...NOTIFICATION_NAMES] },
      { name: "team", kind: "slack", target: "https://hooks.example/…", events: [...FOR_PEOPLE] },
      { name: "files", kind: "file", target: "/var/told", events: [...NOTIFICATION_NAMES] },
      { name: "me", kind: "desktop", target: "the screen of this machine", events: ["TASK_FAILED", "TASK_VERIFIED"] },
    ]);
  });

  test("secrets come from the environment, and are known as secrets", () => {
    const env = {
      HOOK: "https://hooks.example/T1/abcdefgh",
      SIGN: "signing secret",
      TOKEN: "123456:abcdef",
      KEY: "header key",
    };
    const { sinks } = notifyingOf(
      {
        notify: {
          team: { type: "slack", url_env: "HOOK", secret_env: "SIGN", env_http_headers: { "x-key": "KEY" } },
          phone: { type: "telegram", token_env: "TOKEN", chat_id: "42" },
        },
      },
      env,
    );
    expect(sinks.map(({ target, secrets }) => ({ target, secrets }))).toEqual([
      { target: "https://hooks.example/…", secrets: ["signing secret", "header key", "T1/abcdefgh"] },
      { target: "https://api.telegram.org/…", secrets: ["bot123456:abcdef/sendMessage"] },
    ]);
  });

  test.for([
    { table: {}, says: '[notify.x] needs url = "https://…"' },
    { table: { url: "https://a.example", url_env: "U" }, says: "keep one" },
    { table: { url_env: "U" }, says: "takes url_env from U, which is not set" },
    { table: { url: "https://a.example", secret_env: "S" }, says: "takes secret_env from S, which is not set" },
    { table: { url: "https://a.example", events: "TASK_DONE" }, says: '[notify.x] "TASK_DONE" is not a notification' },
    { table: { type: "file" as const }, says: "needs folder" },
    { table: { type: "telegram" as const, chat_id: "1" }, says: "needs token_env" },
    { table: { type: "telegram" as const, token_env: "T" }, says: "needs chat_id" },
  ])("a mistake says what to write: $says", ({ table, says }) => {
    expect(() => notifyingOf({ notify: { x: table } }, {})).toThrow(says);
  });

  test("83, 87, D13: the variables of OpenLoom, with any separator, prefix and all", () => {
    const env = {
      OPENLOOM_NOTIFY_WEBHOOK_URLS: "http://127.0.0.1:1/a http://127.0.0.1:2/b,\nhttp://127.0.0.1:3/c",
      OPENLOOM_NOTIFY_WEBHOOK_EVENTS: "TASK_FAILED TASK_COMPLETED",
      OPENLOOM_NOTIFY_FILE_DIRS: "/one, /two",
      OPENLOOM_NOTIFY_FILE_PREFIX: "mine",
      OPENLOOM_NOTIFY_RECENT_MESSAGES: "7",
    };
    expect(shown({}, env).map(({ name, target, events }) => [name, target, events.length])).toEqual([
      ["openloom-webhook-1", "http://127.0.0.1:1/…", 2],
      ["openloom-webhook-2", "http://127.0.0.1:2/…", 2],
      ["openloom-webhook-3", "http://127.0.0.1:3/…", 2],
      ["openloom-file-1", "/one", NOTIFICATION_NAMES.length],
      ["openloom-file-2", "/two", NOTIFICATION_NAMES.length],
    ]);
    expect(notifyingOf({}, env).recentMessages).toBe(7);
    expect(() => notifyingOf({}, { OPENLOOM_NOTIFY_RECENT_MESSAGES: "many" })).toThrow("must be a whole number");
  });
});

describe("[inbox]", () => {
  test("the configuration comes before the variables of OpenLoom", () => {
    const env = {
      OPENLOOM_INBOX_DIR: "/loom",
      OPENLOOM_INBOX_DEFAULT_WORKSPACE: "/w",
      OPENLOOM_INBOX_DEFAULT_SESSION: "s",
      OPENLOOM_INBOX_POLL_SECONDS: "0.2",
    };
    expect(inboxOf({}, env)).toMatchObject({
      folder: "/loom",
      defaultWorkspace: "/w",
      defaultThread: "s",
      rescanMs: 1_000,
      roots: undefined,
    });
    const config: ConfigFile = {
      inbox: { folder: "/in", default_workspace: "/d", default_thread: "t", poll_seconds: 60, settle_ms: 100 },
      tasks: { workspace_roots: ["/d"] },
    };
    expect(inboxOf(config, env)).toEqual({
      folder: "/in",
      defaultWorkspace: "/d",
      defaultThread: "t",
      rescanMs: 60_000,
      settleMs: 100,
      roots: ["/d"],
      sources: [],
    });
    expect(inboxOf({}, {}).folder).toBeUndefined();
    expect(() => inboxOf({}, { OPENLOOM_INBOX_POLL_SECONDS: "soon" })).toThrow("must be a number of seconds");
  });

  test("sources of webhooks have their secret from the environment", () => {
    const config: ConfigFile = {
      inbox: { webhooks: { hub: { type: "github", secret_env: "HUB", workspaces: { "o/r": "/r" } } } },
    };
    expect(inboxOf(config, { HUB: "secret" }).sources).toMatchObject([
      { name: "hub", kind: "github", secret: "secret", workspaces: { "o/r": "/r" } },
    ]);
    expect(() => inboxOf(config, {})).toThrow("[inbox.webhooks.hub] takes secret_env from HUB, which is not set");
  });
});
