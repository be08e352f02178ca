import { mkdir, writeFile } from 'node:fs/promises'
import { cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import { packageRoot } from '../playground/paths.ts'

/** Prints a line of progress to standard error. */
export const say = (line: string): void => void process.stderr.write(`${line}\n`)

/** The machine now. Its load shows whether other work disturbs the figures. */
export const machineNow = () => ({
  processors: cpus().length,
  model: cpus()[0]?.model,
  node: process.version,
  loadAverage: loadavg()[0] ?? 0,
})

/** `on 2 processors, load average 0.3 before, 1.9 after, Node v20.20.2` */
export const machineText = (before: ReturnType<typeof machineNow>): string => {
  const { processors, node, loadAverage } = machineNow()
  const [load, loadAfter] = [before.loadAverage, loadAverage].map((value) => value.toFixed(1))
  return `on ${processors} processors, load average ${load} before, ${loadAfter} after, Node ${node}`
}

/** The path of a file in the folder of results, which exists then. */
export const outputFile = async (name: string): Promise<string> => {
  const folder = join(packageRoot(), 'bench/out')
  await mkdir(folder, { recursive: true })
  return join(folder, name)
}

/** Writes figures as JSON into the folder of results. */
export const writeFigures = async (name: string, figures: object): Promise<void> =>
  writeFile(await outputFile(name), `${JSON.stringify(figures, null, 2)}\n`)
