import { execFile } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { mkdir, readdir, readFile, rename } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const accelerator = fileURLToPath(new URL('..', import.meta.url))
const cache = fileURLToPath(new URL('../../node_modules/.cache/accelerator/', import.meta.url))

/** The filter as its sources are now. It is compiled once per state of its sources, for all test files and runs. */
export const compiledFilter = async (): Promise<Buffer> => {
  const file = `${cache}${await sourceHash()}.wasm`
  return readFile(file).catch(() => build(file))
}

export const compileFilter = async (): Promise<WebAssembly.Module> =>
  WebAssembly.compile(new Uint8Array(await compiledFilter()))

/** Another worker may build the same file meanwhile: the file appears whole, or not at all. */
const build = async (file: string): Promise<Buffer> => {
  await mkdir(cache, { recursive: true })
  const unfinished = `${file}.${randomUUID()}`
  await promisify(execFile)(process.execPath, [`${accelerator}build.mjs`, unfinished])
  await rename(unfinished, file)
  return readFile(file)
}

const sourceHash = async (): Promise<string> => {
  const names = (await readdir(`${accelerator}filter`)).sort().map((name) => `filter/${name}`)
  const hash = createHash('sha256')
  for (const name of [...names, 'build.mjs']) hash.update(`${name}\0`).update(await readFile(`${accelerator}${name}`))
  return hash.digest('hex')
}
