/**
 * The same tree for everybody: every dependency is named by one exact version, packages agree with each other on it,
 * and no lockfile names a registry host.
 * Usage: node scripts/manifests.ts [root]
 */
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { runCheck, type CheckResult, type Finding } from "./finding.ts";

const SECTIONS = ["dependencies", "devDependencies", "optionalDependencies", "overrides"] as const;
type Manifest = { readonly version?: string } & {
  readonly [section in (typeof SECTIONS)[number]]?: Record<string, string>;
};

export function checkManifests(root: string): CheckResult {
  const files = globSync(["package.json", "{packages,apps}/*/package.json", "conformance/package.json"], {
    cwd: root,
  }).sort();
  const findings: Finding[] = [];
  const seen = new Map<string, { version: string; file: string }>();
  for (const file of files) {
    const manifest = JSON.parse(readFileSync(join(root, file), "utf8")) as Manifest;
    for (const [name, version] of SECTIONS.flatMap((section) => Object.entries(manifest[section] ?? {}))) {
      if (!/^\d+\.\d+\.\d+(-[\w.-]+)?$/.test(version)) {
        findings.push({ at: file, text: `${name} is "${version}", which is not one exact version` });
      }
      const first = seen.get(name) ?? { version, file };
      seen.set(name, first);
      if (first.version !== version) {
        findings.push({ at: file, text: `${name} is ${version} here and ${first.version} in ${first.file}` });
      }
    }
  }
  return { examined: files.length, findings: [...findings, ...hostsInLockfiles(root)] };
}

function hostsInLockfiles(root: string): Finding[] {
  const beside = existsSync(join(root, "conformance/package.json")) ? ["conformance/package-lock.json"] : [];
  return ["package-lock.json", ...beside].flatMap((file) => hostsIn(root, file));
}

function hostsIn(root: string, file: string): Finding[] {
  if (!existsSync(join(root, file))) return [{ at: file, text: "is missing" }];
  const lines = readFileSync(join(root, file), "utf8").split("\n");
  return lines.flatMap((content, index) =>
    /"resolved": "https?:/.test(content) ? [{ at: `${file}:${index + 1}`, text: "names a registry host" }] : [],
  );
}

if (import.meta.main) runCheck(checkManifests);
