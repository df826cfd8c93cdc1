import { expect, test } from "vitest";
import { namesThisMachine, reachOf, type Reach } from "./ip-address.ts";

const BY_REACH: Readonly<Record<Exclude<Reach, "global"> | "global", readonly string[]>> = {
  metadata: [
    "169.254.169.254",
    "100.100.100.200",
    "fe80::1%eth0",
    "fd00:ec2::254",
    // The same address carried by every form that carries one.
    "::ffff:169.254.169.254",
    "::ffff:a9fe:a9fe",
    "0:0:0:0:0:FFFF:A9FE:A9FE",
    "::a9fe:a9fe",
    "::169.254.169.254",
    "::ffff:0:a9fe:a9fe",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b::169.254.169.254",
    "64:ff9b:1::a9fe:a9fe",
    "64:ff9b:1:a9fe:a9:fe00::",
    "2002:a9fe:a9fe::1",
    "2001:0:a9fe:a9fe::1",
    "2001:0:808:808::5601:5601",
  ],
  loopback: ["127.0.0.1", "127.9.9.9", "::1", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1"],
  private: ["10.1.2.3", "172.31.0.1", "192.168.1.1", "100.64.0.1", "fc00::1", "fec0::1", "::ffff:c0a8:101"],
  nowhere: [
    "0.0.0.0",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::7f00:1",
    "::808:808",
    "64:ff9b::a00:1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    "2002:a00:1::",
    "2001:db8::1",
    "2001:10::1",
    "3fff::1",
    "100::1",
    "ff02::1",
    "4000::1",
    "1::1",
  ],
  global: ["8.8.8.8", "2606:4700::1", "2001:4860:4860::8888", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1"],
};

test("12.15: an address leads where its bytes lead, however it is written", () => {
  for (const [reach, addresses] of Object.entries(BY_REACH)) {
    for (const address of addresses) expect([address, reachOf(address)]).toEqual([address, reach]);
  }
});

test("12.15: what is no address is none", () => {
  for (const text of [
    "",
    "example.com",
    "1.2.3",
    "1.2.3.256",
    "01.2.3.4",
    "1:2:3",
    ":::",
    "::1::",
    "12345::",
    "g::",
    "1::2:3:4:5:6:7:8",
  ])
    expect([text, reachOf(text)]).toEqual([text, undefined]);
});

test("12.15: this machine is meant by its names and by its addresses", () => {
  const meant = ["localhost", "LOCALHOST.", "a.localhost", "127.0.0.1", "[::1]", "[::ffff:7f00:1]"];
  const others = ["localhost.evil.example", "example.com", "128.0.0.1", "[::2]"];
  expect([...meant, ...others].map(namesThisMachine)).toEqual([...meant.map(() => true), ...others.map(() => false)]);
});
