import { llamaServers } from '../support/llama-servers.ts'
import { allFlows, describeConversations } from './conversations-suite.ts'

describeConversations(
  // The gateway's part in the other APIs is the same on every engine, and tested on the embedded one.
  {
    name: 'real llama-server',
    countsEveryStream: true,
    flows: allFlows.filter(({ api }) => api.name === 'chat completions'),
  },
  { pods: llamaServers([[], []]) },
)
