// Envoy's filter for turns, from AssemblyScript to WebAssembly: into dist, or into the file that is given.
import { mkdirSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { argv } from 'node:process'
import { fileURLToPath } from 'node:url'
import asc from 'assemblyscript/asc'

const root = fileURLToPath(new URL('..', import.meta.url))
const outFile = resolve(argv[2] ?? `${root}/dist/accelerator/turns.wasm`)
mkdirSync(dirname(outFile), { recursive: true })
const { error, stderr } = await asc.main([
  'accelerator/filter/filter.ts',
  ...['--baseDir', root, '--outFile', outFile],
  '-O3',
  ...['--enable', 'simd'],
  '--noAssert',
  // It allocates nothing of its own, and has no way to end with a message.
  ...['--runtime', 'stub', '--use', 'abort='],
])
if (error !== null) throw new Error(`${error.message}\n${stderr.toString()}`)
