/**
 * The files of `deploy/` say what the program knows: their commands and options are parsed as the program does, paths of
 * probes are routes, metrics of alerts exist, files beside them are there, and a process is left longer than its grace.
 */
import { existsSync, globSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { parseCommandArgs } from "./args.ts";
import { commands } from "./command-table.ts";
import { graceMsOf } from "./leaving.ts";

const FOLDER = path.join(import.meta.dirname, "../../../deploy");
const METRICS = path.join(import.meta.dirname, "../../server/src/metrics");
const OPENAPI = path.join(import.meta.dirname, "../../../schemas/http-openapi.json");
type Json = Readonly<Record<string, unknown>>;

/** Strict: a key that is there twice is an error, as it is for those who read these files. */
function documentsOf(file: string): readonly Json[] {
  const documents = parseAllDocuments(readFileSync(path.join(FOLDER, file), "utf8"), { merge: true, uniqueKeys: true });
  expect([file, documents.flatMap(({ errors, warnings }) => [...errors, ...warnings])]).toEqual([file, []]);
  return documents.map((document) => document.toJS() as Json);
}

/** Of routes that need no token. */
function publicPaths(): readonly string[] {
  const { paths } = JSON.parse(readFileSync(OPENAPI, "utf8")) as { readonly paths: Readonly<Record<string, Json>> };
  return Object.entries(paths).flatMap(([where, { get }]) =>
    JSON.stringify((get as Json | undefined)?.["security"]) === "[]" ? [where] : [],
  );
}

/** Every value under a name, at any depth. */
function found(value: unknown, name: string): readonly unknown[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, one]) => [...(key === name ? [one] : []), ...found(one, name)]);
}

async function graceOf(words: readonly string[]): Promise<number> {
  const [name = "", ...args] = words;
  const entry = commands[name];
  if (entry === undefined) throw new Error(`heddle ${name} is no command`);
  return graceMsOf(parseCommandArgs((await entry.load()).options, args)) / 1_000;
}

const texts = (value: unknown): readonly string[] => (Array.isArray(value) ? value.map(String) : []);

test("compose.yaml starts commands that exist, leaves them their grace, and makes what it mounts", async () => {
  const [compose = {}] = documentsOf("compose.yaml");
  const services = Object.entries(compose["services"] as Readonly<Record<string, Json>>);
  const own = services.filter(
    ([, { image }]) => String(image).includes("heddle}") || String(image).includes("-heddle"),
  );
  expect(own.map(([name]) => name)).toEqual(["server", "worker"]);
  for (const [name, service] of own) {
    const grace = await graceOf(texts(service["command"]));
    // Ten seconds for the ends of what did not make it.
    expect([name, Number.parseInt(String(service["stop_grace_period"]), 10) >= grace + 10]).toEqual([name, true]);
    expect(texts(service["security_opt"])).toEqual(
      expect.arrayContaining(["seccomp=unconfined", "systempaths=unconfined"]),
    );
    expect(service).not.toHaveProperty("privileged");
  }
  const volumes = Object.keys(compose["volumes"] as Json);
  const mounts = services.flatMap(([, service]) => texts(service["volumes"])).filter((mount) => mount.includes(":"));
  for (const [from = ""] of mounts.map((mount) => mount.split(":"))) {
    // The token and the configuration are the owner's.
    const isOwners = ["./prometheus.token", "./config.toml"].includes(from);
    expect([from, isOwners || volumes.includes(from) || existsSync(path.join(FOLDER, from))]).toEqual([from, true]);
  }
  const checks = JSON.stringify(found(compose, "healthcheck"));
  for (const [, where] of checks.matchAll(/localhost:4617(\/\w+)/g)) expect(publicPaths()).toContain(where);
  for (const file of ["prometheus.yml", "alerts.yml"]) documentsOf(file);
});

test("the manifests for Kubernetes are whole: each file is named, pods can drain, make sandboxes and be probed", async () => {
  const files = globSync("*.yaml", { cwd: path.join(FOLDER, "kubernetes") }).filter(
    (file) => file !== "kustomization.yaml",
  );
  const [kustomization = {}] = documentsOf("kubernetes/kustomization.yaml");
  expect(texts(kustomization["resources"]).toSorted()).toEqual(files.toSorted());
  const objects = files.flatMap((file) => documentsOf(`kubernetes/${file}`));
  const names = new Set(objects.map(({ kind, metadata }) => `${String(kind)} ${String((metadata as Json)["name"])}`));
  for (const name of found(objects, "secretKeyRef").flatMap((ref) => found(ref, "name")))
    expect(names).toContain(`Secret ${String(name)}`);
  for (const name of found(objects, "configMap").flatMap((ref) => found(ref, "name")))
    expect(names).toContain(`ConfigMap ${String(name)}`);
  const workloads = objects.filter(({ kind }) => kind === "StatefulSet" || kind === "Deployment");
  expect(workloads).toHaveLength(2);
  for (const workload of workloads) {
    const pod = found(workload, "template").flatMap((template) => found(template, "spec"))[0] as Json;
    const [args] = found(pod, "args");
    expect(Number(pod["terminationGracePeriodSeconds"])).toBeGreaterThanOrEqual((await graceOf(texts(args))) + 10);
    expect(pod).toMatchObject({ hostUsers: false, automountServiceAccountToken: false });
    expect(found(pod, "procMount")).toEqual(["Unmasked"]);
    const probed = found(pod, "httpGet").map((get) => String((get as Json)["path"]));
    expect(probed.toSorted()).toEqual(["/livez", "/livez", "/readyz"]);
    for (const where of probed) expect(publicPaths()).toContain(where);
    // What they ask is the address of the pod, which the server has to know as its own.
    expect(texts(args)).toContain("--allow-host=$(POD_IP)");
    const [labels] = found(found(workload, "template"), "labels");
    expect(found(workload, "matchLabels")[0]).toEqual(labels);
  }
  const [budget] = objects.filter(({ kind }) => kind === "PodDisruptionBudget");
  expect(found(budget, "matchLabels")).toEqual([{ app: "heddle", role: "worker" }]);
});

test("alerts name metrics that the server tells", () => {
  const told = globSync("*.ts", { cwd: METRICS }).filter((file) => !file.includes(".test."));
  const source = told.map((file) => readFileSync(path.join(METRICS, file), "utf8")).join("\n");
  const rules = readFileSync(path.join(FOLDER, "alerts.yml"), "utf8");
  const named = [...rules.matchAll(/\bheddle_\w+/g)].map(([name]) => name.replace(/_(?:bucket|sum|count)$/, ""));
  expect(named.length).toBeGreaterThan(5);
  for (const name of named) expect(source).toContain(`"${name}"`);
});
