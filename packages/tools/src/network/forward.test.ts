import { expect, test } from "vitest";
import { forwardsFor, proxiedHosts } from "./forward.ts";

test("listed ports of the loopback are brought inside, those of other hosts are not", () => {
  const rules = ["localhost:5432", "127.0.0.1:5432", "[::1]:8080", "127.0.0.1", "10.0.0.5:9", "*.example.org:5432"];
  const forwards = forwardsFor(rules);
  expect(forwards.map(({ host, address, port }) => `${address} ${port} for ${host}`).toSorted()).toEqual([
    "127.0.0.1 443 for 127.0.0.1",
    "127.0.0.1 5432 for 127.0.0.1",
    "127.0.0.1 80 for 127.0.0.1",
    "::1 5432 for localhost",
    "::1 8080 for [::1]",
  ]);
  expect(proxiedHosts(rules, forwards)).toEqual([]);
});

test("a host of the loopback stays with the proxy where a port of it could not be brought inside", () => {
  const rules = ["localhost", "127.0.0.1:5432"];
  const made = forwardsFor(rules).filter(({ port }) => port !== 80);
  expect(proxiedHosts(rules, made)).toEqual(["localhost"]);
  // There may be no IPv6.
  expect(
    proxiedHosts(
      rules,
      forwardsFor(rules).filter(({ address }) => address === "127.0.0.1"),
    ),
  ).toEqual([]);
  const many = Array.from({ length: 40 }, (_, nth) => `127.0.0.1:${2000 + nth}`);
  expect(forwardsFor(many)).toHaveLength(32);
  expect(proxiedHosts(many, forwardsFor(many))).toEqual(["127.0.0.1"]);
});
