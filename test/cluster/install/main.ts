import { existsSync } from 'node:fs'
import { InstallError, installOnce } from '../../../playground/install/install-once.ts'
import { ownEnvironment } from '../../../playground/paths.ts'
import { isVllmInstalled, prepareVllm } from '../rig/vllm.ts'
import { buildGoTool } from './build-go-tool.ts'
import { clusterToolsDir, folderOf } from './folders.ts'
import { goTools } from './go-tools.ts'
import { crdsTool, installCrds } from './install-crds.ts'
import { installKubectl, kubectlTool } from './install-kubectl.ts'

/** Builds what is missing, one program after the other, and goes on after one that cannot be built. */
const env = ownEnvironment()
const say = (line: string): void => void process.stdout.write(`${line}\n`)
const wanted = process.argv.slice(2)
const tools = [kubectlTool, crdsTool, ...goTools].filter(({ name }) => wanted.length === 0 || wanted.includes(name))
const missing = tools.filter((tool) => !existsSync(folderOf(tool)))

const installer = (tool: (typeof tools)[number]) => {
  if ('module' in tool) return (into: string) => buildGoTool(tool, into, env)
  return tool === kubectlTool ? installKubectl : installCrds
}

for (const tool of tools.filter((one) => !missing.includes(one))) say(`found  ${tool.name} ${tool.version}`)
for (const { name, version, cpuSeconds, megabytes } of missing) {
  say(`builds ${name} ${version}: about ${cpuSeconds} s of processor time, ${megabytes} MB`)
}
if (missing.length > 0) {
  const minutes = Math.ceil(missing.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0) / 60)
  say(`into ${clusterToolsDir()}, once; about ${minutes} minutes of processor time, and 4 GB for Go's own cache`)
}
const run = async (step: () => Promise<string>): Promise<void> => {
  try {
    say(await step())
  } catch (error) {
    if (!(error instanceof InstallError)) throw error
    say(`failed ${error.message}`)
    process.exitCode = 1
  }
}
for (const tool of missing) {
  const start = performance.now()
  await run(async () => {
    await installOnce({ directory: folderOf(tool), install: (into) => installer(tool)(into, env) })
    return `built  ${folderOf(tool)} in ${Math.round((performance.now() - start) / 1000)} s`
  })
}
if (isVllmInstalled()) {
  await run(async () => {
    await prepareVllm(say)
    return 'found  vLLM with LMCache'
  })
} else {
  // Too large to be installed unasked.
  say(
    'not installed: vLLM with LMCache, whose rows are left out (make vllm-up installs it: 7 GB of disk, 11 GB of memory)',
  )
}
