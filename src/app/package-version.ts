import { createRequire } from 'node:module'
import { z } from 'zod'

/** The gateway's own version, from package.json. */
export const packageVersion = (): string =>
  z.object({ version: z.string() }).parse(createRequire(import.meta.url)('#package.json')).version
