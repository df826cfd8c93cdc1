/** The catalog as a whole, for listing and refreshing it. Runs only look up, and load nothing of this. */
export { describeModels, type DescribedModel } from "./describe.ts";
export { importCatalog } from "./import.ts";
export { catalogsInForce } from "./lookup.ts";
export { LICENCE, refreshCatalog, resetCatalog, type RefreshReport } from "./refresh.ts";
export { catalogText, type CatalogModel } from "./rows.ts";
