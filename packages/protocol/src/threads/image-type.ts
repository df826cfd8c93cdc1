/** The first bytes of a file decide what kind of image it is, not its name. undefined: none that models accept. */
export function imageTypeOf(bytes: Buffer): string | undefined {
  const ascii = bytes.toString("latin1", 0, 12);
  if (ascii.startsWith("\u0089PNG\r\n\u001a\n")) return "image/png";
  if (ascii.startsWith("\u00ff\u00d8\u00ff")) return "image/jpeg";
  if (ascii.startsWith("GIF87a") || ascii.startsWith("GIF89a")) return "image/gif";
  return ascii.startsWith("RIFF") && ascii.endsWith("WEBP") ? "image/webp" : undefined;
}
