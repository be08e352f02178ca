import type { Rig } from './rig.ts'

/** The pages of metrics of the gateways that a label selector selects; empty for a pod that does not answer. */
export const metricsPages = async (
  rig: Rig,
  selector: string,
): Promise<readonly { readonly pod: string; readonly page: string }[]> => {
  const path = 'jsonpath={range .items[*]}{.metadata.name} {.status.podIP}{"\\n"}{end}'
  const pods = (await rig.kubectl('get', 'pods', '-l', selector, '-o', path)).trim().split('\n')
  return Promise.all(
    pods.map(async (line) => {
      const [pod = '', address = ''] = line.split(' ')
      const page = await fetch(`http://${address}:9090/metrics`).then(
        (answer) => answer.text(),
        () => '',
      )
      return { pod, page }
    }),
  )
}
