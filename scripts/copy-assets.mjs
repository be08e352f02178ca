// tsc emits only what it compiles; the Redis scripts are read from beside their adapter at run time.
import { cpSync, writeFileSync } from 'node:fs'

cpSync('src', 'dist/src', { recursive: true, filter: (path) => !/\.[cm]?ts$|tsconfig\.json$/.test(path) })
// Tells make when the gateway was compiled.
writeFileSync('dist/built', '')
