import { expect, test } from "vitest";
import { HostRule, Network } from "./envelope.ts";
import { hostRuleFor, isHostAllowed, networkWithin, parseHost } from "./hosts.ts";

const FORMS: readonly (readonly [string, string | undefined])[] = [
  ["example.org", "example.org"],
  ["Example.ORG", "example.org"],
  ["example.org.", "example.org"],
  ["a_b.c-d.example", "a_b.c-d.example"],
  ["localhost", "localhost"],
  // Other letters that programs read as these.
  ["bücher.example", "xn--bcher-kva.example"],
  ["xn--bcher-kva.example", "xn--bcher-kva.example"],
  ["ⓔxample.org", "example.org"],
  ["exa\u00admple.org", "example.org"],
  ["example。org", "example.org"],
  // IPv4 in every notation that some program reads.
  ["127.0.0.1", "127.0.0.1"],
  ["127.0.0.1.", "127.0.0.1"],
  ["0x7f.1", "127.0.0.1"],
  ["0X7F.0.0.1", "127.0.0.1"],
  ["0177.0.0.01", "127.0.0.1"],
  ["017700000001", "127.0.0.1"],
  ["2130706433", "127.0.0.1"],
  ["0x7f000001", "127.0.0.1"],
  ["127.1", "127.0.0.1"],
  ["１２７.0.0.1", "127.0.0.1"],
  ["127。0。0。1", "127.0.0.1"],
  ["1", "0.0.0.1"],
  // IPv6 by its bytes, and IPv4 within it.
  ["[::1]", "[::1]"],
  ["::1", "[::1]"],
  ["[0:0:0:0:0:0:0:1]", "[::1]"],
  ["2001:DB8:0:0::1", "[2001:db8::1]"],
  ["[::ffff:127.0.0.1]", "127.0.0.1"],
  ["::FFFF:7f00:1", "127.0.0.1"],
  ["0:0:0:0:0:ffff:a9fe:a9fe", "169.254.169.254"],
];

const NO_HOSTS: readonly string[] = [
  "",
  ".",
  "example.org..",
  ".example.org",
  "a..b",
  "*.example.org",
  "*",
  "example.org:80",
  "user@example.org",
  "example.org@evil.example",
  "example.org/",
  "example.org\\evil.example",
  "example.org#evil.example",
  "example.org?evil.example",
  "ex%61mple.org",
  "example.org%00.evil.example",
  "example.org\0.evil.example",
  "example.org\r\nHost: evil.example",
  "exa\tmple.org",
  " example.org",
  "example.org ",
  "1.2.3.4.5",
  "256.1.1.1",
  "127.0.0.08",
  "[127.0.0.1]",
  "[example.org]",
  "[",
  "[]",
  "[::1",
  "::1]",
  "[::1%25lo]",
  "fe80::1%eth0",
  ":::",
  "1::2::3",
  `${"a".repeat(64)}.example`,
  `${"a.".repeat(127)}example`,
  "a".repeat(100_000),
];

test("a host has one form, however it is written", () => {
  expect(FORMS.map(([text]) => [text, parseHost(text)?.text])).toEqual(FORMS);
});

test("what is no host, or could be read in two ways, is none", () => {
  expect(NO_HOSTS.filter((text) => parseHost(text) !== undefined)).toEqual([]);
});

const RULES = ["example.org", "*.npmjs.example", "api.example:8443", "127.0.0.1:3000", "[::1]:3000", "localhost:3000"];

test.for<readonly [string, number, boolean]>([
  ["example.org", 443, true],
  ["example.org", 80, true],
  ["EXAMPLE.org.", 443, true],
  ["example.org", 8080, false],
  ["www.example.org", 443, false],
  ["example.org.evil.example", 443, false],
  ["evilexample.org", 443, false],
  ["registry.npmjs.example", 443, true],
  ["a.b.npmjs.example", 443, true],
  ["npmjs.example", 443, false],
  ["evilnpmjs.example", 443, false],
  [".npmjs.example", 443, false],
  ["registry.npmjs.example", 22, false],
  ["api.example", 8443, true],
  ["api.example", 443, false],
  ["127.0.0.1", 3000, true],
  ["0x7f.1", 3000, true],
  ["2130706433", 3000, true],
  ["::ffff:127.0.0.1", 3000, true],
  ["127.0.0.1", 80, false],
  ["127.0.0.2", 3000, false],
  ["[0:0::1]", 3000, true],
  ["localhost", 3000, true],
  ["localhost", 80, false],
  ["*.npmjs.example", 443, false],
  ["*.example.org", 443, false],
  ["exämple.org", 443, false],
  ["еxample.org", 443, false],
])("%s at port %i: %s", ([host, port, isAllowed]) => {
  expect(isHostAllowed(RULES, host, port)).toBe(isAllowed);
});

test("a wildcard stands for names, never for a part of an address", () => {
  expect(isHostAllowed(["*.0.0.1", "*.1"], "127.0.0.1", 80)).toBe(false);
  expect(isHostAllowed(["*.0.0.1", "*.1"], "a.0.0.1", 80)).toBe(false);
});

test("a rule that could be read as another one allows nothing, and is not accepted", () => {
  const wrong = ["0x7f.1", "2130706433", "127.1", "*.127.0.0.1", "example.org:65536", "[127.0.0.1]", "a..b", "*"];
  const hosts = ["127.0.0.1", "example.org", "0.0.0.1"];
  expect(wrong.filter((rule) => hosts.some((host) => isHostAllowed([rule], host, 80)))).toEqual([]);
  expect(wrong.filter((rule) => HostRule.safeParse(rule).success)).toEqual([]);
  expect(Network.safeParse(RULES).success).toBe(true);
});

test.for<readonly [Network, Network, boolean]>([
  ["none", "none", true],
  ["none", ["example.org"], true],
  ["none", "all", true],
  ["all", "all", true],
  ["all", ["example.org"], false],
  ["all", "none", false],
  [["example.org"], "all", true],
  [["example.org"], "none", false],
  [["example.org"], ["example.org", "other.example"], true],
  [["example.org"], ["other.example"], false],
  [["example.org:443"], ["example.org"], true],
  [["example.org"], ["example.org:443"], false],
  [["example.org"], ["example.org:443", "example.org:80"], true],
  [["example.org:8080"], ["example.org"], false],
  [["a.example.org"], ["*.example.org"], true],
  [["example.org"], ["*.example.org"], false],
  [["*.example.org"], ["*.example.org"], true],
  [["*.a.example.org"], ["*.example.org"], true],
  [["*.example.org"], ["*.a.example.org"], false],
  [["*.example.org"], ["a.example.org", "b.example.org"], false],
  [["*.badexample.org"], ["*.example.org"], false],
  [["*.example.org:8080"], ["*.example.org"], false],
  [["127.0.0.1:1"], ["[::ffff:127.0.0.1]:1"], true],
  [["[0:0::1]"], ["[::1]"], true],
])("%j within %j: %s", ([inner, outer, isWithin]) => {
  expect(networkWithin(inner, outer)).toBe(isWithin);
});

test("within means: whatever the inner list allows, the outer one allows", () => {
  const lists = [["a.x"], ["*.x"], ["*.x:443", "a.x:80"], ["*.a.x", "x"], ["x:80"], ["*.x", "x"], ["127.0.0.1"]];
  const hosts = ["x", "a.x", "b.x", "b.a.x", "127.0.0.1", "y"];
  const asks = hosts.flatMap((host) => [80, 443, 1].map((port) => ({ host, port })));
  for (const inner of lists) {
    for (const outer of lists) {
      if (!networkWithin(inner, outer)) continue;
      const beyond = asks.filter(
        ({ host, port }) => isHostAllowed(inner, host, port) && !isHostAllowed(outer, host, port),
      );
      expect({ inner, outer, beyond }).toEqual({ inner, outer, beyond: [] });
    }
  }
});

test("the rule for a host and port is one that allows it", () => {
  for (const [text, port] of [
    ["example.org", 443],
    ["127.0.0.1", 3000],
    ["[::1]", 80],
    ["[::1]", 9],
  ] as const) {
    const host = parseHost(text);
    if (host === undefined) throw new Error(text);
    const rule = hostRuleFor(host, port);
    expect({ rule, ok: isHostAllowed([rule], text, port), valid: HostRule.safeParse(rule).success }).toEqual({
      rule,
      ok: true,
      valid: true,
    });
  }
});
