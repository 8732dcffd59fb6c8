#!/usr/bin/env bash
# Trains on data with the program: a classifier on pictures that the program draws, in one process and in several, interrupted, resumed and
# evaluated again, and a GAN measured by that classifier. Mistakes are reported before anything starts.
# Usage: data_train_test.sh <troupe program> <scratch folder>
set -uo pipefail
troupe=$1 scratch=$2
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch" || exit 1
fail() {
  echo "$1"
  tail -n 20 out
  exit 1
}
final_loss() { # of a run's folder
  awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == "validation_loss") at = i } $1 == "final" { print $at }' "$1/metrics.csv"
}
tasks=cartpole_balance,pendulum_swingup,reacher_easy
"$troupe" dataset render scenes --classes $tasks --rows 32 --size 32 >out 2>&1 || fail 'the data were not drawn'
"$troupe" dataset render scenes --classes $tasks --rows 12 --size 32 --split validation >out 2>&1 || fail 'the validation data were not drawn'
cat >small.textproto <<'T'
name: "small"
deterministic: true
data { path: "scenes" size: 32 crop: "padded" epochs: 4 evaluation_epochs: 2 }
classifier { model: "resnet20" batch_size: 24 learning_rate: 0.5 warmup_epochs: 1 }
checkpoint { minutes: 0 }
T
"$troupe" train small.textproto --runs runs --quiet >out 2>&1 || fail 'the classifier did not train'
run=$(echo runs/small/*)
grep -q '^top1 ' out || fail 'the summary has no top1'
head -n 1 "$run/metrics.csv" | grep -q 'validation_top1' || fail 'metrics.csv has no validation_top1'
[ "$(grep -c '^evaluation' "$run/metrics.csv")" = 1 ] || fail 'there is not one evaluation before the final one'
[ "$(grep -c '^final' "$run/metrics.csv")" = 1 ] || fail 'there is no final evaluation'
[ -s "$run/report.html" ] && [ -s "$run/checkpoints/16/learner.safetensors" ] || fail 'the report or the checkpoint is missing'
"$troupe" evaluate "$run" >out 2>&1 || fail 'the run was not evaluated again'
loss=$(awk '$1 == "loss" { print $2 }' out)
awk -v loss="$loss" -v known="$(final_loss "$run")" 'BEGIN { exit (known - loss) ^ 2 >= 1e-9 }' ||
  fail "evaluated again the loss is $loss, not that of the run"

# The loss is measured on the uncropped pictures, normalised as in training: no crop and a crop that cannot move anything give the same.
measured() { # crop and a key
  "$troupe" train small.textproto --runs runs --quiet --set name="$1" --set data.crop="$1" --set "$2" --set data.epochs=1 \
    --set classifier.warmup_epochs=0 --set classifier.mean=0.2 >out 2>&1 && final_loss "runs/$1"/*
}
loss=$(measured none data.size=0)
[ -n "$loss" ] && [ "$loss" = "$(measured padded data.padding=0)" ] || fail 'validation pictures are not those that training sees'

# Two replicas train in separate processes. A run stopped half-way and resumed ends with the same parameters as an uninterrupted one, bit for bit.
"$troupe" train small.textproto --runs runs --quiet --processes --set name=two --set learner.replicas=2 >out 2>&1 || fail 'two replicas did not train'
"$troupe" train small.textproto --runs runs --quiet --set name=half --set stop.minutes=0.0001 >out 2>&1 || fail 'half a run did not train'
half=$(echo runs/half/*)
ls "$half/checkpoints" | grep -qv '^16$' || fail 'the run that should end early made all its updates'
sed -i 's/minutes: 0.0001/minutes: 0/' "$half/config.textproto"
"$troupe" resume "$half" --quiet >out 2>&1 || fail 'the run did not resume'
cmp "$run/checkpoints/16/learner.safetensors" "$half/checkpoints/16/learner.safetensors" || fail 'the resumed run ended elsewhere'

cat >gan.textproto <<'T'
name: "gan"
data { path: "scenes" size: 32 crop: "none" epochs: 2 evaluation_epochs: 1 }
sngan { generator_channels: 16 critic_channels: 16 critic_steps: 2 batch_size: 12 latent: 16 evaluation_samples: 24 }
checkpoint { minutes: 0 }
T
# Its two replicas share the classifier.
"$troupe" train gan.textproto --runs runs --quiet --set sngan.classifier="$run" --set learner.replicas=2 >out 2>&1 || fail 'the GAN did not train'
grep -q '^frechet_distance ' out || fail 'the summary has no Fréchet distance'
[ -s "$(echo runs/gan/*)/pictures/samples-8.png" ] || fail 'there is no picture of the last samples'

refused() { # words, experiment, then arguments of train
  local words=$1
  shift
  "$troupe" train "$1" --runs refused --quiet "${@:2}" >out 2>&1
  [ $? = 2 ] && grep -q -- "$words" out || fail "not refused with \"$words\": $*"
}
refused 'classifier.batch_size' small.textproto --set classifier.batch_size=25 --set learner.replicas=2
refused 'data.path nowhere\|nowhere' small.textproto --set data.path=nowhere
refused 'environment' small.textproto --set environment.task=cartpole_balance
refused 'has 96 rows, but an update takes 97' small.textproto --set classifier.batch_size=97
refused 'sngan.classifier runs/.* was not trained on pictures of 64x64' gan.textproto --set sngan.classifier="$run" --set data.size=64 --set data.crop=random_resized
mkdir other
cp -r scenes/train other/train
cp -r scenes/validation other/validation
mv other/validation/reacher_easy other/validation/a_reacher
refused 'has other classes than the data it goes with' small.textproto --set data.path=other
[ ! -e refused ] || [ -z "$(find refused -name metrics.csv)" ] || fail 'a refused run has begun'
echo trained
