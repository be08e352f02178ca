import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'

const profileSchema = z.object({
  nodes: z.array(
    z.object({
      id: z.number(),
      callFrame: z.object({ functionName: z.string(), url: z.string(), lineNumber: z.number() }),
      children: z.array(z.number()).optional(),
    }),
  ),
  samples: z.array(z.number()),
  timeDeltas: z.array(z.number()),
})
type Profile = z.infer<typeof profileSchema>
type CallFrame = Profile['nodes'][number]['callFrame']

const shownLines = 30

/**
 * Where the CPU time of a profile went. Time in which nothing ran is left out. By part: what ran itself. By function: the gateway's own
 * functions, each with what it had libraries, Node and native code do for it.
 */
export const summariseProfiles = async (directory: string): Promise<string> => {
  const names = (await readdir(directory)).filter((name) => name.endsWith('.cpuprofile')).sort()
  const texts = names.map(async (name) => {
    const profile = profileSchema.parse(JSON.parse(await readFile(join(directory, name), 'utf8')))
    return `${name}\n${summarise(profile)}`
  })
  return (await Promise.all(texts)).join('\n\n')
}

const summarise = (profile: Profile): string => {
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]))
  const parents = new Map(profile.nodes.flatMap(({ id, children }) => (children ?? []).map((child) => [child, id])))
  const ownerOf = (id: number): string => {
    for (let at: number | undefined = id; at !== undefined; at = parents.get(at)) {
      const frame = nodes.get(at)?.callFrame
      if (frame !== undefined && isOwn(frame)) return `${frame.functionName || '(anonymous)'} ${placeOf(frame)}`
    }
    const frame = nodes.get(id)?.callFrame
    return frame === undefined ? '?' : `outside the gateway: ${partOf(frame)}`
  }
  const byPart = new Map<string, number>()
  const byOwner = new Map<string, number>()
  let busy = 0
  for (const [index, id] of profile.samples.entries()) {
    const frame = nodes.get(id)?.callFrame
    const took = profile.timeDeltas[index] ?? 0
    // `dispatch` is the profiler itself, being started and stopped.
    if (frame === undefined || frame.functionName === '(idle)' || isProfiler(frame)) continue
    busy += took
    add(byPart, partOf(frame), took)
    add(byOwner, ownerOf(id), took)
  }
  const list = (times: ReadonlyMap<string, number>): string =>
    [...times]
      .sort(([, one], [, other]) => other - one)
      .slice(0, shownLines)
      .map(([name, took]) => `  ${((100 * took) / busy).toFixed(1).padStart(5)} %  ${name}`)
      .join('\n')
  return `busy for ${(busy / 1_000_000).toFixed(2)} s; by part:\n${list(byPart)}\nby function:\n${list(byOwner)}`
}

const isOwn = ({ url }: CallFrame): boolean => url.includes('/dist/') && !url.includes('/node_modules/')

const isProfiler = ({ functionName, url }: CallFrame): boolean => functionName === 'dispatch' && url === ''

const add = (times: Map<string, number>, name: string, took: number): void =>
  void times.set(name, (times.get(name) ?? 0) + took)

const partOf = ({ functionName, url }: CallFrame): string => {
  if (url === '') return functionName.startsWith('(') ? functionName : 'native functions'
  const dependency = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1]
  if (dependency !== undefined) return dependency
  if (url.startsWith('node:')) return url.replace('node:internal/', 'node:').split('/').slice(0, 2).join('/')
  return `src/${/dist\/([^/]+(?:\/(?:http2|grpc-js|codec|redis|memory|warmup))?)/.exec(url)?.[1] ?? '?'}`
}

const placeOf = ({ url, lineNumber }: CallFrame): string =>
  url === '' ? '' : `${url.replace(/^.*\/(?:node_modules|dist)\//, '')}:${lineNumber + 1}`
