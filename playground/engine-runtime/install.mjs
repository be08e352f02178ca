// Installs llama.cpp for the embedded engine into this folder: node-llama-cpp without its fourteen platform packages
// (725 MB), and then the one prebuilt CPU package that this machine needs. Nothing is compiled, no install script runs.
// Run again, it only looks and returns.
import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const folder = fileURLToPath(new URL('.', import.meta.url))
const prefix = 'engine runtime:'

/**
 * The prebuilt package for each `process.platform` and `process.arch`. Apple Silicon has one package for CPU and GPU.
 */
const platformPackages = {
  'linux-x64': 'linux-x64',
  'linux-arm64': 'linux-arm64',
  'linux-arm': 'linux-armv7l',
  'linux-riscv64': 'linux-riscv64',
  'darwin-arm64': 'mac-arm64-metal',
  'darwin-x64': 'mac-x64',
  'win32-x64': 'win-x64',
  'win32-arm64': 'win-arm64',
}

async function main() {
  const platform = `${process.platform}-${process.arch}`
  const platformPackage = platformPackages[platform]
  if (platformPackage === undefined) {
    throw new Error(`llama.cpp has no prebuilt binary for ${platform}; use PODS=host:port with engines of your own`)
  }
  const lock = await readJson(join(folder, 'package-lock.json'))
  const wanted = [wantedPackage(lock, 'node-llama-cpp'), wantedPackage(lock, '@huggingface/jinja')]
  const { version } = wanted[0]
  const binaryName = `@node-llama-cpp/${platformPackage}`
  const binary = { name: binaryName, version, integrity: lock.packages[`node_modules/${binaryName}`]?.integrity }
  wanted.push(binary)

  if ((await problemsOf(wanted)).length === 0) {
    say(`node-llama-cpp ${version} with ${binaryName} is installed`)
    return
  }
  say(`installing node-llama-cpp ${version} with ${binaryName} (about 30 MB to download) …`)
  const startedMs = Date.now()
  await npm([
    'install',
    '--no-save',
    '--omit=optional',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    `${binaryName}@${version}`,
  ])
  const problems = await problemsOf(wanted)
  if (problems.length > 0) throw new Error(`npm ended well, but ${problems.join('; ')}`)
  say(`installed in ${((Date.now() - startedMs) / 1000).toFixed(1)} s`)
}

function wantedPackage(lock, name) {
  const entry = lock.packages[`node_modules/${name}`]
  return { name, version: entry.version, integrity: entry.integrity }
}

/**
 * What keeps the installed packages from being the wanted ones: version, and the checksum that npm verified when it
 * unpacked them.
 */
async function problemsOf(wanted) {
  const installed = await readJson(join(folder, 'node_modules', '.package-lock.json')).catch(() => undefined)
  if (installed === undefined) return ['nothing is installed']
  const problems = []
  for (const { name, version, integrity } of wanted) {
    const entry = installed.packages[`node_modules/${name}`]
    const manifest = await readJson(join(folder, 'node_modules', name, 'package.json')).catch(() => undefined)
    if (entry?.version !== version || manifest?.version !== version) problems.push(`${name} ${version} is not there`)
    else if (integrity !== undefined && entry.integrity !== integrity)
      problems.push(`${name} has another checksum than package-lock.json`)
  }
  return problems
}

function npm(args) {
  return new Promise((resolve, reject) => {
    const onWindows = process.platform === 'win32'
    const child = spawn(onWindows ? 'npm.cmd' : 'npm', args, {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'pipe'],
      shell: onWindows,
    })
    const output = []
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => output.push(chunk))
    child.on('error', (error) => reject(new Error(`npm cannot be started: ${error.message}`)))
    child.on('close', (code) => {
      if (code === 0) resolve()
      else reject(new Error(`npm ended with code ${code}:\n${Buffer.concat(output).toString().trim()}`))
    })
  })
}

async function readJson(path) {
  return JSON.parse(await readFile(path, 'utf8'))
}

function say(text) {
  process.stdout.write(`${prefix} ${text}\n`)
}

try {
  await main()
} catch (error) {
  process.stderr.write(
    `${prefix} ${error.message}\n${prefix} not installed. Try again with: node ${join(folder, 'install.mjs')}\n`,
  )
  process.exitCode = 1
}
