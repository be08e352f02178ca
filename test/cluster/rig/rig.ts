import { appendFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createChildren } from '../../../playground/child-process.ts'
import { type ControlPlane, startControlPlane } from './control-plane.ts'
import { createNetwork, type Network } from './network.ts'
import { startNodes } from './node.ts'
import type { Image } from './pod-process.ts'
import { startServices } from './services.ts'

/** A cluster of two nodes on this machine, without containers. */
export interface Rig extends ControlPlane {
  /** For files of the test. */
  readonly folder: string
  readonly network: Network
  /** Adds a line to the file that `CLUSTER_LOG` names, with what pods and controllers say. */
  readonly log: (line: string) => void
  /** What stands for the images that contain the name, the longest one first; more can be added. */
  readonly images: Record<string, Image>
  readonly children: ReturnType<typeof createChildren>
  stop(): Promise<void>
}

/** Without images there is a control plane alone. */
export const startRig = async (given?: Readonly<Record<string, Image>>): Promise<Rig> => {
  const folder = await mkdtemp(join(tmpdir(), 'cluster-'))
  const children = createChildren()
  const logFile = process.env['CLUSTER_LOG']
  const log = (line: string): void => {
    if (logFile) appendFileSync(logFile, `${line}\n`)
  }
  const network = await createNetwork(folder)
  const ends: (() => Promise<void>)[] = [() => network.remove(), () => children.stop()]
  const stop = async (): Promise<void> => {
    for (const end of ends.reverse()) await end().catch((error: unknown) => log(`rig: ${String(error)}`))
    await rm(folder, { recursive: true, force: true })
  }
  try {
    const controlPlane = await startControlPlane(join(folder, 'control-plane'), children)
    const images = { ...given }
    const imageOf = (image: string): Image => {
      const names = Object.keys(images).filter((name) => image.includes(name))
      const found = images[names.toSorted((a, b) => b.length - a.length)[0] ?? '']
      if (found === undefined) throw new Error(`the rig has nothing for the image ${image}`)
      return found
    }
    const podsFolder = join(folder, 'pods')
    const rig: Rig = { ...controlPlane, folder, network, log, images, children, stop }
    if (given === undefined) return rig
    const nodes = await startNodes({ folder: podsFolder, controlPlane, network, children, imageOf, onLine: log })
    ends.push(() => nodes.stop())
    const services = await startServices(controlPlane, network)
    ends.push(() => services.stop())
    return rig
  } catch (error) {
    await stop()
    throw error
  }
}
