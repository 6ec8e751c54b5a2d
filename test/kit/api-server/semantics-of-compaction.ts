import { metadataOnlyListAccept } from '../../../src/kube/objects.ts'
import { type Step, watched } from './semantics-step.ts'

const nodes = '/api/v1/nodes'

export const semanticsOfCompaction: readonly Step[] = [
  { title: 'the store forgets old versions and the server restarts', request: 'COMPACT', expected: '' },
  {
    title: 'a page of a forgotten version is gone',
    request: `GET ${nodes}?limit=1&continue={{page.metadata.continue}}`,
    accept: metadataOnlyListAccept,
    expected: '410 Expired',
  },
  {
    title: 'a list tells where a watch may start',
    request: `GET ${nodes}`,
    expected: '200',
    save: 'nodesAfter',
  },
  {
    title: 'a watch from a forgotten version ends with 410',
    request: `WATCH ${nodes}?${watched}&resourceVersion={{nodes.metadata.resourceVersion}}`,
    expected: 'E',
  },
  {
    title: 'a watch from the version of the list is silent',
    request: `WATCH ${nodes}?${watched}&resourceVersion={{nodesAfter.metadata.resourceVersion}}`,
    expected: '',
  },
]
