/** The simulated fleet in a process of its own, so that none of its work counts as the gateway's. Answers what its parent asks for. */
import { request } from 'undici'
import { startSimulatedFleet } from '../../test/support/simulated-fleet/simulated-fleet.ts'
import type { FleetAnswer, FleetRequest } from './fleet.ts'
import { promptTokens } from './prompts.ts'

const reply = (answer: FleetAnswer): void => void process.send?.(answer)

/** As vLLM and LMCache have them by default. */
const fleet = await startSimulatedFleet({ blockTokens: 16, chunkTokens: 256, loadMs: 0, writeMs: 0, reportMs: 0 })

const run = async ({ pod, seed, tokens, fields }: FleetRequest): Promise<void> => {
  const prompt = Array.from(promptTokens(seed, tokens))
  const answer = await request(`http://${fleet.pods[pod].address}/v1/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: fleet.modelName, max_tokens: 4, prompt, ...fields }),
    // This process is both ends, and may be busy for so long that one of them thinks the other one gone.
    reset: true,
  })
  const text = await answer.body.text()
  if (answer.statusCode !== 200) throw new Error(`a pod answered ${answer.statusCode}: ${text}`)
}

// A parent that is gone asks nothing more.
process.on('disconnect', () => process.exit(0))
process.on('message', ({ number, ...asked }: FleetRequest & { readonly number: number }) => {
  run(asked).then(
    () => reply({ kind: 'ran', number }),
    (error: unknown) => reply({ kind: 'failed', number, reason: String(error) }),
  )
})
reply({
  kind: 'ready',
  coordinator: fleet.coordinator.server.address,
  model: fleet.modelName,
  pods: fleet.pods.map(({ address, instance }) => ({ address, instance: instance.id })),
})
