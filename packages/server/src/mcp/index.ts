export { envelopeSurface, type EnvelopeSurface } from "./envelope-surface.ts";
export { heddleSurface } from "./heddle-surface.ts";
export { serveMcpChannel } from "./library.ts";
export type { ToolSurface } from "./surface.ts";
