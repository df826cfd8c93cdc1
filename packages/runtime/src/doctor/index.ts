export { findings, type Finding } from "./findings.ts";
