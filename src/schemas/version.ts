declare const SKYHOOKD_VERSION: string | undefined

/** From package.json, put in by the bundler; `source` when run without a bundle. */
export const version: string = typeof SKYHOOKD_VERSION === 'string' ? SKYHOOKD_VERSION : 'source'
