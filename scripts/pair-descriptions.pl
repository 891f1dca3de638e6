#!/usr/bin/perl
# Makes parallel text from the descriptions of Debian's packages and their translations.
#
#   pair-descriptions.pl ENGLISH TRANSLATED LANGUAGE OUTDIR [HELD_OUT]
#
# ENGLISH and TRANSLATED are the texts of apt's Translation-en and Translation-LANGUAGE. Written to
# OUTDIR: train, dev and test (.en and .LANGUAGE, line by line), and untranslated.tsv: package,
# short description and first sentence of a sample of the descriptions that have no translation.
#
# A description's parts are its short description, its paragraphs and its list items; a part is
# split into sentences where both sides have equally many. dev and test hold HELD_OUT (1 000) pairs
# each, of whole packages: nothing that stands in the description of a package of dev or test, in either
# language, is left in train. The result depends on the two texts alone. Only what perl-base has is
# used, since every Debian machine has that.
use strict;
use warnings;
use utf8;

use constant MAX_WORDS => 60;   # in a sentence, on either side
use constant SAMPLES => 2000;   # lines of untranslated.tsv
use constant MAX_PART_WORDS => 30;  # in a part of several sentences that is kept whole

die "usage: $0 ENGLISH TRANSLATED LANGUAGE OUTDIR [HELD_OUT]\n" unless @ARGV == 4 || @ARGV == 5;
my ($english_file, $translated_file, $language, $outdir, $held_out_pairs) = (@ARGV, 1000);
binmode STDERR, ':encoding(UTF-8)';

# After these a dot ends no sentence.
my %abbreviations = (
  en => 'e\.g|i\.e|vs|cf|approx|ca|Dr|Mr|Mrs|Ms|Prof|St|No|Nos|Vol|Fig|Sec|Ed|Eq|esp|incl|resp|aka',
  de => 'z\.\s?B|d\.\s?h|u\.\s?a|u\.\s?ä|o\.\s?ä|i\.\s?d\.\s?R|s\.\s?u|s\.\s?a|z\.\s?T|bzw|ca|evtl|ggf|inkl|vgl|bspw|bzgl|sog|engl|'
    . 'Dr|Prof|Nr|Abb|Kap|Hrsg|St|max|min|mind|allg|eigentl|vs|Vers|resp',
  fr => 'p\.\s?ex|c\.-à-d|cf|M|Mme|Dr|env|n°|vol|éd',
  es => 'p\.\s?ej|Sr|Sra|Dr|Ud|Uds|núm|aprox',
  it => 'p\.\s?es|es|ad es|Sig|Dr|n|vol|ca',
);
# After these it may or may not: both are tried.
my $ambiguous = 'etc|usw|ecc|Inc|Ltd|Co|Corp|Jr|u\.\s?s\.\s?w';

# Returns [package, md5, short description, [lines of the text]] of each entry.
sub read_descriptions {
  my ($file) = @_;
  open(my $in, '<:encoding(UTF-8)', $file) or die "$file: $!\n";
  my (@entries, $package, $md5, $short, @lines);
  my $finish = sub {
    push @entries, [$package, $md5, $short, [@lines]] if defined $short && defined $md5;
    ($package, $md5, $short, @lines) = ();
  };
  while (my $line = <$in>) {
    $line =~ s/\s+$//;
    if ($line eq '') { $finish->() }
    elsif ($line =~ /^Package: (\S+)/) { $package = $1 }
    elsif ($line =~ /^Description-md5: (\S+)/) { $md5 = $1 }
    elsif ($line =~ /^Description-[\w@]+: (.*)/) { $short = $1 }
    elsif ($line =~ /^ (.*)/ && defined $short) { push @lines, $1 }
  }
  $finish->();
  close($in) or die "$file: $!\n";
  return \@entries;
}

sub tidy {
  my ($text) = @_;
  $text =~ s/\s+/ /g;
  $text =~ s/^ | $//g;
  return $text;
}

# The paragraphs of a text, each a list of parts: running text, list items, indented lines.
sub paragraphs {
  my ($lines) = @_;
  my @paragraphs = ([]);
  my $indent = 0;     # of the part at hand
  my $is_item = 0;
  for my $line (@$lines) {
    if ($line =~ /^\s*\.?\s*$/) {
      push @paragraphs, [] if @{$paragraphs[-1]};
      next;
    }
    my $parts = $paragraphs[-1];
    my ($space, $rest) = $line =~ /^(\s*)(.*)/;
    my $item = $rest =~ s/^(?:[*+•·–—-]+|o|\d{1,2}[.)]|\([a-z0-9]\))\s+(?=\S)//;
    my $continues = @$parts && !$item
      && ($is_item ? (length($space) > $indent || $indent == 0) : (length($space) == 0 && $indent == 0));
    if ($continues) {
      $parts->[-1] .= " $rest";
      next;
    }
    push @$parts, $rest;
    ($indent, $is_item) = (length($space), $item);
  }
  return grep { @$_ } map { [map { tidy($_) } @$_] } @paragraphs;
}

# Splits a part into sentences; `eager` also splits where an abbreviation may end a sentence.
sub sentences {
  my ($text, $lang, $eager) = @_;
  my $keep = $abbreviations{$lang} // $abbreviations{en};
  my (@found, $start);
  $start = 0;
  while ($text =~ /[.!?…]+["'”“’»)\]]*\s+(?=["'„“«(\[]*[\p{Lu}\d])/g) {
    my ($end, $mark) = (pos($text), $-[0]);
    my $before = substr($text, $start, $mark - $start);
    if (substr($text, $mark, 1) eq '.') {
      next if $before =~ /(?:^|[\s("'„])(?:$keep)$/i;
      next if $before =~ /(?:^|[\s(.])\p{L}$/ && $before !~ /[\s(]I$/;     # an initial
      next if $lang eq 'de' && $before =~ /(?:^|[\s(])\d{1,2}$/ && !$eager;  # an ordinal number
      next if $before =~ /(?:^|[\s("'])(?:$ambiguous)$/ && !$eager;
    }
    push @found, tidy(substr($text, $start, $end - $start));
    $start = $end;
  }
  push @found, tidy(substr($text, $start)) if $start < length($text);
  return \@found;
}

sub word_count { return scalar(() = $_[0] =~ /\S+/g) }

# Whether two texts are of lengths that translations of each other have.
sub alike_in_length {
  my ($a, $b) = map { length } @_;
  my ($short, $long) = $a < $b ? ($a, $b) : ($b, $a);
  return $long <= 1.9 * $short + 12;
}

# Why a pair is no use for training, or '' if it is.
sub fault {
  my ($source, $target) = @_;
  return 'placeholder' if "$source $target" =~ /<trans>|\x{FFFD}/;
  return 'no words' if $source !~ /\p{L}{2}/ || $target !~ /\p{L}{2}/;
  return 'identical' if lc($source) eq lc($target);
  return 'too long' if word_count($source) > MAX_WORDS || word_count($target) > MAX_WORDS;
  return 'length ratio' if !alike_in_length($source, $target);
  my @words = map { lc } $target =~ /\p{L}{2,}/g;
  my %in_source = map { lc($_) => 1 } $source =~ /\p{L}{2,}/g;
  my $same = grep { $in_source{$_} } @words;
  return 'not translated' if @words >= 5 && $same > 0.8 * @words;
  my $code = () = $source =~ m![{}=<>\\|;_\$]!g;
  return 'code' if $code > 0.06 * length($source);
  return '';
}

# The pairs of sentences of one part, or none with the reason.
sub align_part {
  my ($source, $target, $dropped) = @_;
  my @tries = ([0, 0], [1, 0], [0, 1], [1, 1]);
  for my $try (@tries) {
    my $from = sentences($source, 'en', $try->[0]);
    my $to = sentences($target, $language, $try->[1]);
    next if @$from != @$to;
    next if @$from > 1 && grep { !alike_in_length($from->[$_], $to->[$_]) } 0 .. $#$from;
    return map { [$from->[$_], $to->[$_]] } 0 .. $#$from;
  }
  return [$source, $target]
    if word_count($source) <= MAX_PART_WORDS && word_count($target) <= MAX_PART_WORDS;
  $dropped->{'sentences unequal'}++;
  return ();
}

# All pairs of a description and its translation.
sub align {
  my ($source, $target, $dropped) = @_;
  my @pairs = ([tidy($source->[2]), tidy($target->[2])]);
  my @from = paragraphs($source->[3]);
  my @to = paragraphs($target->[3]);
  if (@from != @to) {
    $dropped->{'paragraphs unequal'}++;
    return @pairs;
  }
  for my $i (0 .. $#from) {
    my ($a, $b) = ($from[$i], $to[$i]);
    if (@$a != @$b) {
      $dropped->{'list items unequal'}++;
      next;
    }
    push @pairs, map { align_part($a->[$_], $b->[$_], $dropped) } 0 .. $#$a;
  }
  return @pairs;
}

# A number that scatters names evenly, the same on every machine.
sub scatter {
  my ($name) = @_;
  my $hash = 5381;
  $hash = ($hash * 33 + ord($_)) % 4294967291 for split //, "$name$name$name";
  return ($hash * 40503) % 4294967291;
}

sub scattered {
  my ($entries) = @_;
  my %place = map { $_->[0] => scatter($_->[0]) } @$entries;
  return sort { $place{$a->[0]} <=> $place{$b->[0]} || $a->[0] cmp $b->[0] } @$entries;
}

# Texts are the same text if they differ in case, spaces, digits and the closing mark alone.
sub key {
  my ($text) = @_;
  $text = lc($text);
  $text =~ s/\d+/0/g;
  $text =~ s/[\s.:!?;,"'()]+/ /g;
  return tidy($text);
}

sub write_file {
  my ($name, @lines) = @_;
  open(my $out, '>:encoding(UTF-8)', "$outdir/$name") or die "$outdir/$name: $!\n";
  (print {$out} map { "$_\n" } @lines) or die "$outdir/$name: $!\n";
  close($out) or die "$outdir/$name: $!\n";
}

# One translation for one source text: the most frequent, then the first.
sub choose_translations {
  my ($pairs) = @_;
  my (%votes, %order);
  for my $pair (@$pairs) {
    $votes{$pair->[0]}{$pair->[1]}++;
    $order{"$pair->[0]\t$pair->[1]"} //= scalar(keys %order);
  }
  my %chosen;
  for my $source (keys %votes) {
    my $of = $votes{$source};
    ($chosen{$source}) = sort {
      $of->{$b} <=> $of->{$a} || $order{"$source\t$a"} <=> $order{"$source\t$b"}
    } keys %$of;
  }
  return \%chosen;
}

my $english = read_descriptions($english_file);
my %translated = map { $_->[1] => $_ } @{read_descriptions($translated_file)};

my (%pairs_of, %dropped, %done);  # package => its pairs; reason => count; md5 => 1
my @untranslated;
for my $entry (@$english) {
  next if $done{$entry->[1]}++;
  my $translation = $translated{$entry->[1]};
  if ($translation) {
    push @{$pairs_of{$entry->[0]}}, align($entry, $translation, \%dropped);
  } elsif (@{$entry->[3]}) {
    push @untranslated, $entry;
  }
}
die "$translated_file: translates no description of $english_file\n" unless %pairs_of;

my @packages = map { $_->[0] } scattered([map { [$_] } keys %pairs_of]);
my (%splits, %held_out);  # name => pairs; text => 1 where a package of test or dev has it
for my $split ('test', 'dev', 'train') {
  my (@kept, %used);
  while (@packages && ($split eq 'train' || @kept < $held_out_pairs)) {
    my $package = shift @packages;
    for my $pair (@{$pairs_of{$package}}) {
      my ($source, $target) = @$pair;
      my $seen = $held_out{key($source)} || $held_out{key($target)};
      my $fault = fault($source, $target);
      if ($seen) { $dropped{'held out'}++ }
      elsif ($fault) { $dropped{$fault}++ }
      elsif ($split ne 'train' && $used{key($source)}++) { $dropped{'repeated'}++ }
      else { push @kept, $pair }
    }
    # dev may share no text with test, nor train with either: marked package by package.
    if ($split ne 'train') {
      $used{key($_->[0])} = 1 for @{$pairs_of{$package}};
      push @{$splits{"$split texts"}}, map { (key($_->[0]), key($_->[1])) } @{$pairs_of{$package}};
    }
  }
  $held_out{$_} = 1 for @{$splits{"$split texts"} // []};
  if ($split eq 'train') {
    my $chosen = choose_translations(\@kept);
    my %once;
    my @unique = grep { !$once{key($_)}++ } map { $_->[0] } @kept;
    $dropped{'repeated'} += @kept - @unique;
    @kept = map { [$_, $chosen->{$_}] } @unique;
  } else {
    $#kept = $held_out_pairs - 1 if @kept > $held_out_pairs;
  }
  $splits{$split} = \@kept;
}
die sprintf("%s: %d pairs are too few to train on\n", $translated_file, scalar @{$splits{train}})
  if @{$splits{train}} < 3 * $held_out_pairs;

for my $split ('train', 'dev', 'test') {
  write_file("$split.en", map { $_->[0] } @{$splits{$split}});
  write_file("$split.$language", map { $_->[1] } @{$splits{$split}});
}
my %known = map { key($_->[0]) => 1 } map { @{$splits{$_}} } 'train', 'dev', 'test';
my @samples;
for my $entry (scattered(\@untranslated)) {
  my ($package, $md5, $short, $lines) = @$entry;
  my ($paragraph) = paragraphs($lines);
  my $first = $paragraph ? sentences($paragraph->[0], 'en', 0)->[0] : '';
  next if $first !~ /[.!?]$/ || grep { $known{key($_)}++ } $short, $first;
  push @samples, join("\t", $package, tidy($short), $first);
  last if @samples == SAMPLES;
}
write_file('untranslated.tsv', @samples);

printf STDERR "%d pairs to train on, %d to validate on, %d to test on; %d descriptions untranslated\n",
  (map { scalar @{$splits{$_}} } 'train', 'dev', 'test'), scalar @untranslated;
printf STDERR "left out: %s\n", join(', ', map { "$dropped{$_} $_" } sort keys %dropped);
