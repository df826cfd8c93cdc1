import { chmod, mkdir, mkdtemp, readFile, readdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { openReceiver } from "../../../test/receiver.ts";
import { readNames } from "../names.ts";
import type { Outgoing } from "../sink.ts";

import { discordBody, ntfyBody, slackBody, telegramBody } from "./bodies.ts";
import { desktopSink } from "./desktop.ts";
import { fileSink } from "./file.ts";
import { checkedLookup, refusalOf } from "./post.ts";
import { webhookSink, type WebhookKind } from "./webhook.ts";

const events = readNames("*");
const signal = AbortSignal.timeout(60_000);

function notification(extra: Partial<Outgoing> = {}, data: object = {}): Outgoing {
  return {
    id: "ntf_000000000007-0123abcd",
    event: "TASK_FAILED",
    payload: {
      event: "TASK_FAILED",
      task_id: "task_1",
      task_name: "fix <b>it</b>",
      timestamp: 1_700_000_000.125,
      data: { error: "@everyone <script> & more", ...data },
    },
    ...extra,
  };
}

async function folderOf(): Promise<AsyncDisposable & { readonly path: string }> {
  const folder = await mkdtemp(path.join(tmpdir(), "heddle-sinks-"));
  return { path: folder, [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) };
}

describe("where a webhook may connect to", () => {
  const outside = { allowsPrivate: false, allowsLoopback: false };
  test.for([
    "169.254.169.254",
    "::ffff:169.254.169.254",
    "::ffff:a9fe:a9fe",
    "::a9fe:a9fe",
    "64:ff9b::a9fe:a9fe",
    "fe80::1%eth0",
    "fd00:ec2::254",
    "100.100.100.200",
  ])("%s never", (address) => {
    expect(refusalOf(address, { allowsPrivate: true, allowsLoopback: true })).toContain("metadata");
  });

  test.for(["10.1.2.3", "172.31.0.1", "192.168.1.1", "100.64.0.1", "fc00::1", "::ffff:10.0.0.1", "::ffff:c0a8:101"])(
    "%s only where the owner allows it",
    (address) => {
      expect(refusalOf(address, outside)).toContain("allow_private");
      expect(refusalOf(address, { ...outside, allowsPrivate: true })).toBeUndefined();
    },
  );

  test.for(["0.0.0.0", "224.0.0.1", "255.255.255.255", "::", "64:ff9b::a00:1", "2002:a00:1::", "not-an-address"])(
    "%s is nobody's",
    (address) => {
      expect(refusalOf(address, { allowsPrivate: true, allowsLoopback: true })).toBeDefined();
    },
  );

  test("8.8.8.8 and 2606:4700::1 without a word", () => {
    expect([refusalOf("8.8.8.8", outside), refusalOf("2606:4700::1", outside)]).toEqual([undefined, undefined]);
  });

  test("this machine only where the address itself says so", () => {
    expect(refusalOf("127.0.0.1", outside)).toContain("this machine");
    expect(refusalOf("127.0.0.1", { ...outside, allowsLoopback: true })).toBeUndefined();
  });

  test("a name is judged by the address that is connected to", async () => {
    const answer = await new Promise<{ error: Error | null; address: unknown }>((resolve) => {
      checkedLookup((address) => refusalOf(address, outside))("localhost", { all: true }, (error, address) =>
        resolve({ error, address }),
      );
    });
    expect(answer.error?.message).toMatch(/^localhost: .* is this machine/);
  });

  test("a refused address is dead at once, without a request", async () => {
    const sink = webhookSink({
      name: "x",
      kind: "webhook",
      url: new URL("http://169.254.169.254/latest/meta-data"),
      events,
    });
    expect(await sink.send(notification(), { signal })).toEqual({
      kind: "dead",
      message: "169.254.169.254 is link-local, where cloud metadata services are",
    });
  });

  test("90: loopback needs no proxy, whatever the environment says of proxies", async () => {
    await using receiver = await openReceiver();
    const before = { ...process.env };
    try {
      process.env["HTTP_PROXY"] = process.env["http_proxy"] = "http://127.0.0.1:9";
      process.env["NODE_USE_ENV_PROXY"] = "1";
      const sink = webhookSink({ name: "x", kind: "webhook", url: receiver.url, events });
      expect(await sink.send(notification(), { signal })).toMatchObject({ kind: "delivered", status: 204 });
    } finally {
      for (const name of ["HTTP_PROXY", "http_proxy", "NODE_USE_ENV_PROXY"]) {
        if (before[name] === undefined) delete process.env[name];
        else process.env[name] = before[name];
      }
    }
  });

  test("what is behind the host is shown to nobody", async () => {
    const url = new URL("http://127.0.0.1:9/services/T00000/B00000/abcdefghijk?token=supersecret");
    const sink = webhookSink({
      name: "x",
      kind: "slack",
      url,
      events,
      secret: "signing secret",
      secretHeaders: { "x-key": "header secret" },
    });
    expect(sink.target).toBe("http://127.0.0.1:9/…");
    expect(sink.secrets).toEqual([
      "signing secret",
      "header secret",
      "services/T00000/B00000/abcdefghijk",
      "token=supersecret",
    ]);
    const result = await sink.send(notification(), { signal });
    expect(result).toEqual({ kind: "retry", message: "127.0.0.1:9: connection refused" });
  });

  test("a receiver that does not answer in time is tried again later", async () => {
    await using receiver = await openReceiver(() => ({ status: 200, hangs: true }));
    const sink = webhookSink({ name: "x", kind: "webhook", url: receiver.url, events, timeoutMs: 50 });
    expect(await sink.send(notification(), { signal })).toEqual({
      kind: "retry",
      message: `${receiver.url.host}: timed out`,
    });
  });
});

describe("89: bodies in the words of chat programs", () => {
  test("Slack", () => {
    expect(JSON.parse(slackBody(notification()).text)).toEqual({
      text: "*fix &lt;b&gt;it&lt;/b&gt;: failed*\n@everyone &lt;script&gt; &amp; more\ntask_1",
    });
  });

  test("Discord: nobody is called, however long the text", () => {
    const body = JSON.parse(discordBody(notification({}, { error: "x".repeat(5_000) })).text);
    expect(body.allowed_mentions).toEqual({ parse: [] });
    expect(body.content.length).toBeLessThanOrEqual(2_000);
  });

  test("ntfy: a title that is not ASCII still fits a header", () => {
    const { headers, text } = ntfyBody({
      ...notification(),
      payload: { ...notification().payload, task_name: "Übung" },
    });
    expect(text).toBe("@everyone <script> & more\ntask_1");
    expect(headers).toMatchObject({
      priority: "high",
      title: `=?UTF-8?B?${Buffer.from("Übung: failed").toString("base64")}?=`,
    });
  });

  test("Telegram: plain text for one chat", () => {
    expect(JSON.parse(telegramBody(notification(), "42").text)).toEqual({
      chat_id: "42",
      text: "fix <b>it</b>: failed\n@everyone <script> & more\ntask_1",
      disable_web_page_preview: true,
    });
  });

  test("what was only said is not shown as done", () => {
    const said = notification({ event: "TASK_COMPLETED" }, { error: "", summary: "all fine", verified: false });
    expect(JSON.parse(slackBody(said).text).text).toContain("says it is done (not checked)");
    const proven = notification({ event: "TASK_COMPLETED" }, { error: "", summary: "all fine", verified: true });
    expect(JSON.parse(slackBody(proven).text).text).toMatch(/: done\*/);
  });

  test.for(["slack", "discord", "ntfy", "telegram"] as const)(
    "%s takes the same way as any webhook",
    async (kind: WebhookKind) => {
      await using receiver = await openReceiver();
      const sink = webhookSink({ name: kind, kind, url: receiver.url, events, chatId: "42" });
      expect(await sink.send(notification(), { signal })).toMatchObject({ kind: "delivered" });
      expect(receiver.received[0]?.headers).toMatchObject({ "x-heddle-event": "TASK_FAILED" });
      expect(receiver.received[0]?.body).toContain("task_1");
    },
  );
});

describe("87: files", () => {
  const nth = (n: number): Outgoing => notification({ id: `ntf_${String(n).padStart(12, "0")}-0123abcd` });

  test("D19: events of the same millisecond are files of their own, whole, with the prefix", async () => {
    await using folder = await folderOf();
    const target = path.join(folder.path, "made", "when missing");
    const sink = fileSink({ name: "files", folder: target, events, prefix: "mine" });
    await Promise.all([1, 2, 3, 4, 5].map((n) => sink.send(nth(n), { signal })));
    const files = (await readdir(target)).toSorted();
    expect(files).toEqual(
      [1, 2, 3, 4, 5].map((n) => `mine-TASK_FAILED-20231114T221320-125-ntf_00000000000${n}-0123abcd.json`),
    );
    expect(JSON.parse(await readFile(path.join(target, files[0] ?? ""), "utf8"))).toEqual(nth(1).payload);
  });

  test("a second try writes the same file", async () => {
    await using folder = await folderOf();
    const sink = fileSink({ name: "files", folder: folder.path, events });
    await sink.send(nth(1), { signal });
    await sink.send(nth(1), { signal });
    expect(await readdir(folder.path)).toHaveLength(1);
  });

  test("the oldest go, and nothing that is not ours", async () => {
    await using folder = await folderOf();
    await writeFile(path.join(folder.path, "heddle-notes.json"), "{}");
    const sink = fileSink({ name: "files", folder: folder.path, events, keep: 3 });
    for (let n = 1; n <= 10; n += 1) await sink.send(nth(n), { signal });
    const files = (await readdir(folder.path)).toSorted();
    expect(files.length).toBeLessThanOrEqual(6);
    expect(files).toContain("heddle-notes.json");
    expect(files.at(-2)).toContain("ntf_000000000010");
  });

  test("12.1: a link that takes the place of the folder, or of a file in it, is not written through", async () => {
    await using folder = await folderOf();
    const [target, outside] = [path.join(folder.path, "a", "notices"), path.join(folder.path, "outside")];
    await mkdir(outside);
    await writeFile(path.join(outside, "keys"), "mine");
    const sink = fileSink({ name: "files", folder: target, events });
    const sent = await sink.send(nth(1), { signal });
    const file = path.join(target, sent.kind === "delivered" ? (sent.message ?? "") : "");
    await rm(file);
    await symlink(path.join(outside, "keys"), file);
    await sink.send(nth(1), { signal });
    expect(await readFile(path.join(outside, "keys"), "utf8")).toBe("mine");
    await rename(path.join(folder.path, "a"), path.join(folder.path, "b"));
    await mkdir(path.join(outside, "notices"));
    await symlink(outside, path.join(folder.path, "a"));
    await expect(sink.send(nth(2), { signal })).rejects.toMatchObject({ code: "path.outside" });
    expect(await readdir(path.join(outside, "notices"))).toEqual([]);
  });

  test("a folder that cannot be written is tried again later", async () => {
    await using folder = await folderOf();
    await writeFile(path.join(folder.path, "file"), "");
    const sink = fileSink({ name: "files", folder: path.join(folder.path, "file", "below"), events });
    await expect(sink.send(nth(1), { signal })).rejects.toThrow(/ENOTDIR/);
  });
});

describe("the desktop", () => {
  test("shows it with notify-send, words as arguments and never as options or markup", async () => {
    await using folder = await folderOf();
    const bin = path.join(folder.path, "bin");
    await mkdir(bin);
    await writeFile(path.join(bin, "notify-send"), `#!/bin/sh\nprintf '%s\\n' "$@" > "${folder.path}/shown"\n`);
    await chmod(path.join(bin, "notify-send"), 0o755);
    const sink = desktopSink({ name: "screen", events, env: { PATH: `${bin}:/usr/bin:/bin` } });
    expect(await sink.send(notification(), { signal })).toEqual({
      kind: "delivered",
      message: "shown with notify-send",
    });
    expect((await readFile(path.join(folder.path, "shown"), "utf8")).split("\n")).toEqual([
      "--app-name=Heddle",
      "--",
      "fix <b>it</b>: failed",
      "@everyone &lt;script&gt; &amp; more",
      "task_1",
      "",
    ]);
  });

  test("says what is missing where there is no such program", async () => {
    await using folder = await folderOf();
    const sink = desktopSink({ name: "screen", events, env: { PATH: folder.path } });
    expect(await sink.send(notification(), { signal })).toEqual({
      kind: "dead",
      message: "there is neither notify-send (package libnotify-bin) nor osascript on the PATH of this machine",
    });
  });
});
