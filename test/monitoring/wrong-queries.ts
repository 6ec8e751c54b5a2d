/**
 * A deliberate mistake for each query of the dashboard: the comparison with the recorded history has to find it. By
 * title of the panel and letter of the query: what is replaced by what.
 */
export const mistakes: Readonly<Record<string, readonly [right: string, wrong: string]>> = {
  'Nodes complete A': ['100 * ', ''],
  'Stalled Skyhooks A': ['skyhookd_fleet_stalled', 'skyhookd_fleet_node_reasons'],
  'Nodes at work A': ['in_progress', 'completed'],
  'Longest wait or failure A': ['max(', 'min('],
  'Why nodes are not complete A': ['skyhookd_fleet_node_reasons', 'skyhookd_fleet_stalled'],
  'Skyhooks by status A': [' == 1', ' >= 0'],
  'Nodes by status A': ['sum by', 'count by'],
  'Progress A': ['100 * ', ''],
  'Reasons of nodes A': ['skyhookd_fleet_node_reasons', 'skyhookd_fleet_stalled'],
  'Stalled A': ['skyhookd_fleet_stalled', 'skyhookd_fleet_node_reasons'],
  'Agents that do not answer A': ['unready|silent', 'unready'],
  'Nodes in progress A': ['in_progress', 'completed'],
  'Nodes in progress B': ['ceiling', 'matched_nodes'],
  'Complete nodes A': ['completed', 'in_progress'],
  'Complete nodes B': ['matched_nodes', 'ceiling'],
  'Batches A': ['current_batch', 'consecutive_failures'],
  'Batches B': ['consecutive_failures', 'current_batch'],
  'Packages by state A': [' > 0', ''],
  'Packages by stage A': [' > 0', ' > 1'],
  'Failed attempts A': ['restarts_count', 'state_count'],
  'Slots by phase A': ['sum by', 'max by'],
  'Oldest reason A': ['max by', 'min by'],
  'Nodes that nobody looks after A': ['unattended_nodes', 'agents'],
  'Nodes that nobody looks after B': ['max(', 'count('],
  'Agents by version A': ['count by', 'max by'],
}
