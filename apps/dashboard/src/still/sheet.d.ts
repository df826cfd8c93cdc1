/** The build puts a style sheet in the place of its import. */
declare module "*.css?inline" {
  const sheet: string;
  export default sheet;
}
