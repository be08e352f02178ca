import { readFileSync } from 'node:fs'
import { z } from 'zod'

/** The gateway's own version, from package.json. */
export const packageVersion = (): string =>
  z.object({ version: z.string() }).parse(JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')))
    .version
