#!/bin/bash
# sbatch configs/slurm.sh [CONFIG [key=value ...]]
# sbatch configs/slurm.sh CONFIG --site NAME [key=value ...]     at each site of a run over several of them
#
# One rank a GPU. The job goes on from the last restart that is whole, or begins where there is none, and the next job is in
# the queue from its first minute on, waiting for its end, however that comes: time limit, lost node, kill -9. No more jobs
# follow where the run is done, where a file named `stop` in the output directory has ended it (or was there when a job began),
# and where going on cannot succeed; OUTPUT/jobs.txt says what each job did and why the last one was the last:
#   - the program refused the configuration before the run had begun (where a key is wrong, the job alone says so);
#   - the disk is full;
#   - the same error came twice without a new restart in between;
#   - MAKI_ATTEMPTS jobs in a row (3; over sites 20) ended without a new restart, whatever ended them.
# Over several sites each has a queue of its own. The job that comes first waits for the others (sites.wait in CONFIG limits
# that). A site whose time is up makes all stop at the same step with restarts; the others keep their nodes and wait for its
# next job. They go on from the newest restart that all of them have whole.
#
# Settings of box, cosmology and initial conditions belong into CONFIG: they make the run, and may not change on the way. A run
# that has begun keeps its configuration: what is to change stands behind CONFIG as key=value.
# MAKI          the program, where it is not build/maki
# MAKI_OUTPUT   the output directory, in place of that of CONFIG; run.output_directory=DIRECTORY behind CONFIG comes before both
# MAKI_SBATCH   options for the next jobs: those that were given to sbatch by hand and do not stand below
# MAKI_SRUN     how srun starts MPI's ranks (--mpi=pmix; on HPE Cray --mpi=cray_shasta; 'srun --mpi=list' tells what there is)
# MAKI_ATTEMPTS see above
# MAKI_LOCK_WAIT seconds until the next job where the output directory is in use (300): a lost node may leave its lock
#SBATCH --job-name=maki
#SBATCH --nodes=16
#SBATCH --ntasks-per-node=4          # one for each GPU of a node
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=16
#SBATCH --exclusive
#SBATCH --time=12:00:00
#SBATCH --signal=TERM@600            # ten minutes before the end: Maki writes a restart and ends well
#SBATCH --requeue
#SBATCH --open-mode=append
set -euo pipefail

config=${1:-configs/cluster.toml}
[ $# -eq 0 ] || shift
maki=${MAKI:-build/maki}
site=
for ((i = 1; i <= $#; ++i)); do
  case ${!i} in
    --site) next=$((i + 1)); site=${!next:-} ;;
    --site=*) site=${!i#--site=} ;;
  esac
done
# What a run has left that was lost before its first restart is overwritten.
run=("$maki" run "$config" ${MAKI_OUTPUT:+"run.output_directory=$MAKI_OUTPUT"} run.overwrite=true "$@")
refused="the run was refused before it began (mend what the error says, and submit again)"
output=$("${run[@]}" --where) || { status=$?; echo "maki: no more jobs: $refused"; exit "$status"; }
attempts=${MAKI_ATTEMPTS:-$([ -n "$site" ] && echo 20 || echo 3)}
job=${SLURM_JOB_ID:-none}
jobs=$output/jobs.txt

export OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1} OMP_PROC_BIND=close OMP_PLACES=cores
# From Slurm 22.05 on srun does not take --cpus-per-task over from sbatch, and gives each rank one core.
export SRUN_CPUS_PER_TASK=$OMP_NUM_THREADS
# export NCCL_SOCKET_IFNAME=ib0      # where NCCL picks the wrong network
# export MAKI_PAYLOAD=staged         # where neither NCCL nor CUDA-aware MPI does on this machine

# ---- what jobs.txt knows --------------------------------------------------------------------------------------------
# Lines "begin JOB STEP", "next JOB ITS_NEXT_JOB", "end JOB STATUS STEP WORDS", "last JOB WHY"; STEP is that of the newest
# restart, 0: none. After a "last" a job that is submitted by hand counts anew.
newest_step() {
  local newest=0 file number
  for file in "$output"/restart_*/complete.toml; do
    number=${file%/complete.toml}
    number=${number##*/restart_}
    if [ -e "$file" ] && [[ $number =~ ^[0-9]+$ ]] && [ $((10#$number)) -gt "$newest" ]; then newest=$((10#$number)); fi
  done
  echo "$newest"
}
# How often the run has been begun at this step, the newest times.
begun_at() {
  awk -v step="$1" '$1 == "begin" { n = $3 == step ? n + 1 : 0 } $1 == "last" { n = 0 } END { print n + 0 }' "$jobs"
}
# The error with which the run ended last, where it had begun at this step.
last_words() {
  awk -v step="$1" '$1 == "begin" { here = $3 == step } $1 == "end" { words = here ? $0 : "" } $1 == "last" { words = "" } END { print words }' "$jobs" |
    cut -s -d' ' -f5-
}

# ---- the next job ---------------------------------------------------------------------------------------------------
next=
queue_next() {
  [ "$job" != none ] && command -v sbatch >/dev/null || return 0
  next=$(awk -v job="$job" '$1 == "next" && $2 == job { next_job = $3 } END { print next_job }' "$jobs")
  [ -z "$next" ] || return 0         # this job was put back into the queue: the next one is there
  # shellcheck disable=SC2086         # options are words
  if next=$(sbatch --parsable --dependency="afterany:$job" ${MAKI_SBATCH:-} "$0" "$config" "$@"); then
    next=${next%%;*}
    record "next $job $next"
  else
    next=
    echo "maki: the next job could not be submitted; this one goes on, and has to be submitted again by hand" >&2
  fi
}
# No more jobs: says why, and ends with the given status.
finish() {  # STATUS WHY
  echo "maki: $2"
  { echo "last $job $2" >> "$jobs"; } 2>/dev/null || true
  [ -z "$next" ] || scancel "$next" || echo "maki: job $next could not be cancelled; it will find the same" >&2
  exit "$1"
}
give_up() { finish "$1" "no more jobs: $2"; }
record() { { echo "$1" >> "$jobs"; } 2>/dev/null || give_up 1 "$jobs cannot be written (is the disk full?)"; }

# ---- this job -------------------------------------------------------------------------------------------------------
if [ -e "$output/done" ]; then echo "maki: $output is finished (remove $output/done to run it again)"; exit 0; fi
mkdir -p "$output"
touch "$jobs"
said=$(mktemp || mktemp -p "$output" .said.XXXXXX)   # before there is a next job, which would find no room either
trap 'rm -f "$said"' EXIT
queue_next "$@"
if [ -e "$output/stop" ]; then     # made while no job ran
  rm -f "$output/stop"
  finish 3 "stopped by hand before the job began; submitted again, it goes on in $output"
fi

# Whether the program has ended for want of another site, which was lost or did not come.
lacks_site() { [ "$status" = 4 ] || [[ $words =~ "did not come within" ]]; }
# Whether another site is to be waited for in this job.
waits_for_site() { lacks_site || [ "$why" = "another site" ]; }

run_once() {  # sets status, step, words and why
  step=$(newest_step)
  [ "$(begun_at "$step")" -lt "$attempts" ] ||
    give_up 1 "$attempts in a row brought no restart beyond step $step ($jobs, slurm-*.out)"
  local before
  before=$(last_words "$step")
  record "begin $job $step"
  status=0
  srun ${MAKI_SRUN:---mpi=pmix} --cpu-bind=cores "${run[@]}" --resume 2>&1 | tee "$said" ||
    status=${PIPESTATUS[0]}
  words=$(sed -n 's/^maki: error: \(rank [0-9]*: \)\?//p' "$said" | tail -n 1 | tr '\n' ' ')
  why=$(sed -n 's/^Stopped by \(.*\)\. To continue.*/\1/p' "$said" | tail -n 1)
  local now
  now=$(newest_step)
  record "end $job $status $now ${words:-$why}"
  if [ "$status" = 0 ]; then touch "$output/done"; finish 0 "done"; fi
  if [[ $why == "a file named stop"* ]]; then finish "$status" "stopped by hand; submitted again, it goes on in $output"; fi
  [ "$now" = "$step" ] || return 0
  if grep -qE 'No space left on device|Disk quota exceeded' "$said"; then
    give_up "$status" "the disk of $output is full (free some and submit again)"
  fi
  # A lost machine's lock may outlive it by minutes: the next job may find it gone.
  if [[ $words == *"is in use"* ]]; then sleep "${MAKI_LOCK_WAIT:-300}"; return 0; fi
  [ -n "$words" ] && ! lacks_site || return 0
  [ -e "$output/log.txt" ] || give_up "$status" "$refused"
  [ "$words" != "$before" ] || give_up "$status" "the same error twice, and no restart in between"
}

run_once
while [ -n "$site" ] && waits_for_site; do
  echo "maki: this site goes on as soon as the others do"
  run_once
done
onward="submitted again, it"
[ -z "$next" ] || onward="job $next"
if [ "$status" = 3 ]; then
  echo "maki: stopped by $why; $onward goes on in $output"
else
  echo "maki: ended with status $status; $onward goes on in $output" >&2
fi
exit "$status"
